// An invoice that waits for its payment, in Go with pgx. See ../README.md for how to run it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	lane = "invoices-go"
	paid = `{"kind": "single", "waitpoint_key": "payment", "matcher": {"by_name": "paid"}}`

	create = `select execution_id, outcome, public_state
		from ff_create_execution(p_lane_id => @lane, p_payload => @payload, p_idempotency_key => @key)`
	claim = `select handle, handle_kind, attempt_index, lease_epoch, lease_expires_at_ms, payload
		from ff_claim(p_lane_id => @lane, p_worker_id => @worker, p_worker_instance_id => @instance)`
	renew   = `select lease_epoch, lease_expires_at_ms from ff_renew(p_handle => @handle)`
	suspend = `select outcome, waitpoint_id::text, waitpoint_token
		from ff_suspend(p_handle => @handle, p_condition => @condition, p_reason_code => 'waiting_for_callback',
		                p_timeout_ms => 86400000)`
	deliver = `select outcome, public_state
		from ff_deliver_signal(@execution_id, @waitpoint_id, @token, 'paid', p_payload => @payload)`
	observe  = `select signal_name, payload from ff_observe_signals(p_handle => @handle)`
	complete = `select public_state, replayed from ff_complete(p_handle => @handle, p_result => @result)`
)

// A lease is what a claim returns; a program takes the columns it needs.
type lease struct {
	Handle, HandleKind  string
	AttemptIndex        int32
	LeaseEpoch, Expires int64
	Payload             []byte
}

// next claims the oldest invoice. It returns pgx.ErrNoRows if there is none.
func next(ctx context.Context, conn *pgx.Conn) (l lease, err error) {
	// An instance is one process: use a unique name for each.
	args := pgx.NamedArgs{"lane": lane, "worker": "booker", "instance": fmt.Sprintf("booker-%d", os.Getpid())}
	err = conn.QueryRow(ctx, claim, args).
		Scan(&l.Handle, &l.HandleKind, &l.AttemptIndex, &l.LeaseEpoch, &l.Expires, &l.Payload)
	return l, err
}

// sqlState is the SQLSTATE of an error. A PgError also has Detail (json) and Hint.
func sqlState(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return fmt.Sprint(err)
}

func run(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, os.Getenv("PYFF_DSN"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	outsider, err := pgx.Connect(ctx, os.Getenv("PYFF_SENDER_DSN"))
	if err != nil {
		return err
	}
	defer outsider.Close(ctx)

	// Submit work. The key makes a repetition harmless.
	invoice := pgx.NamedArgs{"lane": lane, "payload": []byte("invoice 42"), "key": lane + "/42"}
	var executionID, sameID, outcome, state string
	if err := conn.QueryRow(ctx, create, invoice).Scan(&executionID, &outcome, &state); err != nil {
		return err
	}
	fmt.Println("create:", outcome, state)
	if err := conn.QueryRow(ctx, create, invoice).Scan(&sameID, &outcome, &state); err != nil {
		return err
	}
	fmt.Println("create again:", outcome, sameID == executionID)

	// A worker claims it under a lease, and renews the lease while it works.
	first, err := next(ctx, conn)
	if err != nil {
		return err
	}
	fmt.Println("claim:", first.HandleKind, first.AttemptIndex, first.LeaseEpoch, string(first.Payload))
	var epoch, expires int64
	if err := conn.QueryRow(ctx, renew, pgx.NamedArgs{"handle": first.Handle}).Scan(&epoch, &expires); err != nil {
		return err
	}
	fmt.Println("renew:", epoch, expires >= first.Expires)

	// Suspend: this releases the lease and returns a token for the sender of the signal.
	var waitpointID, token string
	pause := pgx.NamedArgs{"handle": first.Handle, "condition": paid}
	if err := conn.QueryRow(ctx, suspend, pause).Scan(&outcome, &waitpointID, &token); err != nil {
		return err
	}
	fmt.Println("suspend:", outcome)
	if _, err := next(ctx, conn); !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("claimed what is suspended: %w", err)
	}
	fmt.Println("claim: nothing")

	// The outsider has the token, and a login that may only deliver signals.
	_, err = outsider.Exec(ctx, "select * from ff_list_executions()")
	fmt.Println("outsider looks:", sqlState(err))
	signal := pgx.NamedArgs{"execution_id": executionID, "waitpoint_id": waitpointID, "payload": []byte("100 euros")}
	signal["token"] = "key-1:forged"
	fmt.Println("outsider forges:", sqlState(outsider.QueryRow(ctx, deliver, signal).Scan(&outcome, &state)))
	signal["token"] = token
	if err := outsider.QueryRow(ctx, deliver, signal).Scan(&outcome, &state); err != nil {
		return err
	}
	fmt.Println("outsider signals:", outcome, state)

	// Any worker continues the same attempt, under a new lease.
	second, err := next(ctx, conn)
	if err != nil {
		return err
	}
	fmt.Println("claim:", second.HandleKind, second.AttemptIndex, second.LeaseEpoch)
	var name string
	var payload []byte
	if err := conn.QueryRow(ctx, observe, pgx.NamedArgs{"handle": second.Handle}).Scan(&name, &payload); err != nil {
		return err
	}
	fmt.Println("signal:", name, string(payload))

	// The first handle is no longer valid.
	_, err = conn.Exec(ctx, renew, pgx.NamedArgs{"handle": first.Handle})
	fmt.Println("renew with the old handle:", sqlState(err))

	booked := pgx.NamedArgs{"handle": second.Handle, "result": []byte("booked")}
	for _, what := range []string{"complete:", "complete again:"} {
		var replayed bool
		if err := conn.QueryRow(ctx, complete, booked).Scan(&state, &replayed); err != nil {
			return err
		}
		fmt.Println(what, state, replayed)
	}
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
