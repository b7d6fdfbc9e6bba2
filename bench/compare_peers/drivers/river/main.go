// River: many workers and short fetch intervals for throughput, else its defaults. ../wire.py describes the protocol.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const napFor = 20 * time.Millisecond

type message map[string]any

type request struct {
	Op, Task           string
	First, Count, Sets int
	Batch              bool
}

type options struct {
	Sets        []string
	Concurrency int
	Fast        bool
	LeaseS      int `json:"lease_s"`
}

var (
	done   atomic.Int64
	saying sync.Mutex
)

func say(m message) {
	line, _ := json.Marshal(m)
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(string(line))
}

func now() float64 { return float64(time.Now().UnixNano()) / 1e9 }

type noopArgs struct {
	Number int `json:"number"`
}
type markArgs struct {
	Number int `json:"number"`
}
type napArgs struct {
	Number int `json:"number"`
}

func (noopArgs) Kind() string { return "noop" }
func (markArgs) Kind() string { return "mark" }
func (napArgs) Kind() string  { return "nap" }

func args(task string, number int) river.JobArgs {
	switch task {
	case "mark":
		return markArgs{number}
	case "nap":
		return napArgs{number}
	}
	return noopArgs{number}
}

func params(r request, number int) river.InsertManyParams {
	made := river.InsertManyParams{Args: args(r.Task, number)}
	if r.Sets > 0 {
		made.InsertOpts = &river.InsertOpts{Queue: fmt.Sprintf("set%d", number%r.Sets)}
	}
	return made
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func timed(block func() error) (message, error) {
	t0 := now()
	err := block()
	t1 := now()
	return message{"seconds": t1 - t0, "t0": t0, "t1": t1}, err
}

func answer(ctx context.Context, pool *pgxpool.Pool, client *river.Client[pgx.Tx], r request) (message, error) {
	switch r.Op {
	case "setup":
		migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
		if err == nil {
			_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		}
		return message{}, err
	case "enqueue":
		many := make([]river.InsertManyParams, r.Count)
		for i := range many {
			many[i] = params(r, r.First+i)
		}
		return timed(func() error {
			if r.Batch {
				for start := 0; start < r.Count; start += 5000 {
					if _, err := client.InsertManyFast(ctx, many[start:min(start+5000, r.Count)]); err != nil {
						return err
					}
				}
				return nil
			}
			for _, one := range many {
				if _, err := client.Insert(ctx, one.Args, one.InsertOpts); err != nil {
					return err
				}
			}
			return nil
		})
	case "cancel":
		many := make([]river.InsertManyParams, r.Count)
		for i := range many {
			many[i] = river.InsertManyParams{Args: noopArgs{i}}
		}
		jobs, err := client.InsertMany(ctx, many)
		if err != nil {
			return nil, err
		}
		return timed(func() error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				for _, job := range jobs {
					if _, err := client.JobCancelTx(ctx, tx, job.Job.ID); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	return nil, fmt.Errorf("unknown op %q", r.Op)
}

func serve(ctx context.Context, pool *pgxpool.Pool, quiet *slog.Logger) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet})
	must(err)
	say(message{"ready": true})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var r request
		must(json.Unmarshal(lines.Bytes(), &r))
		if m, err := answer(ctx, pool, client, r); err != nil {
			say(message{"error": err.Error()})
		} else {
			say(m)
		}
	}
}

func work(ctx context.Context, pool *pgxpool.Pool, quiet *slog.Logger, o options) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[noopArgs]) error {
		if done.Add(1) == 1 {
			say(message{"done": 1})
		}
		return nil
	}))
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[markArgs]) error {
		say(message{"mark": job.Args.Number, "t": now()})
		return nil
	}))
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[napArgs]) error {
		time.Sleep(napFor)
		say(message{"ran": job.Args.Number})
		return nil
	}))
	config := &river.Config{Logger: quiet, Workers: workers, Queues: map[string]river.QueueConfig{}}
	most := 100
	if o.Concurrency > 0 {
		most = o.Concurrency
	}
	if o.Fast {
		most, config.FetchCooldown, config.FetchPollInterval = 2000, 2*time.Millisecond, 20*time.Millisecond
	}
	if o.LeaseS > 0 {
		config.JobTimeout = time.Duration(o.LeaseS) * time.Second
		config.RescueStuckJobsAfter = config.JobTimeout
	}
	queues := o.Sets
	if len(queues) == 0 {
		queues = []string{river.QueueDefault}
	}
	for _, queue := range queues {
		config.Queues[queue] = river.QueueConfig{MaxWorkers: most}
	}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	must(err)
	must(client.Start(ctx))
	say(message{"ready": true})
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	reported := int64(0)
	for {
		select {
		case <-ended:
			return
		case <-time.After(10 * time.Millisecond):
			if n := done.Load(); n != reported {
				reported = n
				say(message{"done": n})
			}
		}
	}
}

func main() {
	ctx := context.Background()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	pool, err := pgxpool.New(ctx, os.Args[2])
	must(err)
	if os.Args[1] == "client" {
		serve(ctx, pool, quiet)
		return
	}
	var o options
	must(json.Unmarshal([]byte(os.Args[3]), &o))
	work(ctx, pool, quiet, o)
}
