"""`python -m tools.duplicates`"""

from tools.duplicates import explanations, find, stale, unexplained


def main() -> None:
    known, pairs = explanations(), find()
    new = unexplained(pairs, known)
    for pair in pairs:
        print(f"{'' if pair in new else 'explained: '}{pair}")
    for place in stale(pairs, known):
        print(f"in CONTRIBUTING.md, but in no pair: `{place}`")
    print(f"{len(pairs)} pairs, {len(new)} of them not explained in CONTRIBUTING.md")


if __name__ == "__main__":
    main()
