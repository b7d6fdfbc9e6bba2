// FlowFabric's Postgres backend, called as its own benchmarks call it: 16 loops that claim and complete, everything in
// partition 0, a pause of 5 ms where nothing was found. `create_execution` leaves a row in the phase `submitted`, which no
// part of the backend takes further; as in its examples an UPDATE makes it runnable. ../wire.py tells the protocol.
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ff_backend_postgres::{PostgresBackend, PostgresScannerConfig, apply_migrations};
use ff_core::backend::{CancelFlowPolicy, CancelFlowWait, CapabilitySet, ClaimPolicy, Handle, ScannerFilter};
use ff_core::contracts::{
    AddExecutionToFlowArgs, CreateExecutionArgs, CreateFlowArgs, DeliverSignalArgs, ResumeCondition, ResumePolicy,
    SeedWaitpointHmacSecretArgs, SignalMatcher, SuspendArgs, SuspensionReasonCode, WaitpointBinding,
};
use ff_core::engine_backend::EngineBackend;
use ff_core::engine_error::{ContentionKind, EngineError};
use ff_core::partition::PartitionConfig;
use ff_core::types::{
    ExecutionId, FlowId, LaneId, Namespace, SignalId, SuspensionId, TimestampMs, WaitpointId, WaitpointToken, WorkerId,
    WorkerInstanceId,
};
use serde_json::{Value, json};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use uuid::Uuid;

type Any<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const LOOPS: usize = 16;
const LEASE_MS: u32 = 30_000;
const IDLE: Duration = Duration::from_millis(5);
const NAP: Duration = Duration::from_millis(20);

static DONE: AtomicU64 = AtomicU64::new(0);

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{message}");
    let _ = out.flush();
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

fn timed(t0: f64, began: Instant) -> Value {
    let seconds = began.elapsed().as_secs_f64();
    json!({"seconds": seconds, "t0": t0, "t1": t0 + seconds})
}

async fn pool(dsn: &str, size: u32) -> Any<PgPool> {
    let url = dsn.replacen("@/", "@localhost/", 1); // its parser wants a host; the parameter of that name counts
    Ok(PgPoolOptions::new().max_connections(size).connect(&url).await?)
}

fn new_id() -> Any<ExecutionId> {
    Ok(ExecutionId::parse(&format!("{{fp:0}}:{}", Uuid::new_v4()))?)
}

fn execution(id: ExecutionId, lane: &str, task: &str, number: i64) -> CreateExecutionArgs {
    CreateExecutionArgs {
        partition_id: id.partition(),
        execution_id: id,
        namespace: Namespace::new("bench"),
        lane_id: LaneId::new(lane),
        execution_kind: task.to_owned(),
        input_payload: number.to_string().into_bytes(),
        payload_encoding: None,
        priority: 0,
        creator_identity: "bench".to_owned(),
        idempotency_key: None,
        tags: Default::default(),
        policy: None,
        delay_until: None,
        execution_deadline_at: None,
        now: TimestampMs::now(),
    }
}

async fn make_runnable(pool: &PgPool) -> Any<()> {
    sqlx::query("update ff_exec_core set lifecycle_phase = 'runnable' where lifecycle_phase = 'submitted' and partition_key = 0")
        .execute(pool)
        .await?;
    Ok(())
}

async fn answer(backend: &Arc<PostgresBackend>, pool: &PgPool, asked: &Value) -> Any<Value> {
    let int = |name: &str| asked[name].as_i64().unwrap_or(0);
    match asked["op"].as_str().unwrap_or("") {
        "setup" => {
            apply_migrations(pool).await?;
            backend.seed_waitpoint_hmac_secret(SeedWaitpointHmacSecretArgs::new("bench", "ab".repeat(32))).await?;
            Ok(json!({}))
        }
        "enqueue" => {
            let (first, count, sets) = (int("first"), int("count"), int("sets"));
            let task = asked["task"].as_str().unwrap_or("noop");
            let (t0, began) = (now(), Instant::now());
            for number in first..first + count {
                let lane = if sets > 0 { format!("set{}", number % sets) } else { "bench".to_owned() };
                backend.create_execution(execution(new_id()?, &lane, task, number)).await?;
            }
            let spent = timed(t0, began);
            make_runnable(pool).await?;
            Ok(spent)
        }
        "signal" => {
            let token = asked["token"].as_str().unwrap_or("");
            let [execution, waitpoint, secret] = token.splitn(3, '|').collect::<Vec<_>>()[..] else {
                return Err("no token".into());
            };
            let (t0, began) = (now(), Instant::now());
            backend
                .deliver_signal(DeliverSignalArgs {
                    execution_id: ExecutionId::parse(execution)?,
                    waitpoint_id: WaitpointId::parse(waitpoint)?,
                    signal_id: SignalId::new(),
                    signal_name: "go".into(),
                    signal_category: "external".into(),
                    source_type: "external".into(),
                    source_identity: "bench".into(),
                    payload: None,
                    payload_encoding: None,
                    correlation_id: None,
                    idempotency_key: None,
                    target_scope: "execution".into(),
                    created_at: None,
                    dedup_ttl_ms: None,
                    resume_delay_ms: None,
                    max_signals_per_execution: None,
                    signal_maxlen: None,
                    waitpoint_token: WaitpointToken::new(secret),
                    now: TimestampMs::now(),
                })
                .await?;
            Ok(timed(t0, began))
        }
        "cancel" => {
            let flow = FlowId::new();
            let partitions = PartitionConfig::default();
            backend
                .create_flow(&CreateFlowArgs {
                    flow_id: flow.clone(),
                    flow_kind: "bench".into(),
                    namespace: Namespace::new("bench"),
                    now: TimestampMs::now(),
                })
                .await?;
            for number in 0..int("count") {
                let id = ExecutionId::for_flow(&flow, &partitions);
                backend.create_execution(execution(id.clone(), "bench", "noop", number)).await?;
                backend
                    .add_execution_to_flow(&AddExecutionToFlowArgs {
                        flow_id: flow.clone(),
                        execution_id: id,
                        now: TimestampMs::now(),
                    })
                    .await?;
            }
            let (t0, began) = (now(), Instant::now());
            backend.cancel_flow(&flow, CancelFlowPolicy::CancelAll, CancelFlowWait::WaitIndefinite).await?;
            Ok(timed(t0, began))
        }
        other => Err(format!("unknown op {other}").into()),
    }
}

async fn suspend(backend: &PostgresBackend, handle: &Handle, id: &ExecutionId, number: i64) -> Any<()> {
    let waitpoint = WaitpointId::new();
    let key = format!("wpk:{waitpoint}");
    let args = SuspendArgs::new(
        SuspensionId::new(),
        WaitpointBinding::Fresh { waitpoint_id: waitpoint.clone(), waitpoint_key: key.clone() },
        ResumeCondition::Single { waitpoint_key: key, matcher: SignalMatcher::ByName("go".into()) },
        ResumePolicy::normal(),
        SuspensionReasonCode::WaitingForSignal,
        TimestampMs::now(),
    );
    let mut tries = 0;
    let outcome = loop {
        match backend.suspend(handle, args.clone()).await {
            // its own three tries at SERIALIZABLE were not enough beside other workers
            Err(EngineError::Contention(ContentionKind::RetryExhausted)) if tries < 100 => {
                tries += 1;
                tokio::time::sleep(IDLE).await;
            }
            other => break other?,
        }
    };
    let secret = outcome.details().waitpoint_token.token().as_str().to_owned();
    say(&json!({"waiting": number, "token": format!("{id}|{waitpoint}|{secret}")}));
    Ok(())
}

async fn perform(backend: &PostgresBackend, handle: &Handle) -> Any<()> {
    let id = ff_core::handle_codec::decode(&handle.opaque)?.payload.execution_id;
    let given = backend.read_execution_context(&id).await?;
    let number: i64 = String::from_utf8_lossy(&given.input_payload).parse().unwrap_or(0);
    match given.execution_kind.as_str() {
        "mark" => say(&json!({"mark": number, "t": now()})),
        "nap" => {
            tokio::time::sleep(NAP).await;
            say(&json!({"ran": number}));
        }
        "wait" => {
            if backend.observe_signals(handle).await?.is_empty() {
                return suspend(backend, handle, &id, number).await;
            }
            say(&json!({"mark": number, "t": now()}));
        }
        _ => {
            if DONE.fetch_add(1, Ordering::Relaxed) == 0 {
                say(&json!({"done": 1}));
            }
        }
    }
    backend.complete(handle, None).await?;
    Ok(())
}

async fn work(backend: Arc<PostgresBackend>, lanes: Vec<LaneId>, number: usize, lease_ms: u32) {
    let worker = format!("{}-{number}", std::process::id());
    let policy =
        ClaimPolicy::new(WorkerId::new(worker.clone()), WorkerInstanceId::new(worker), lease_ms, None);
    loop {
        let mut found = false;
        for lane in &lanes {
            match backend.claim(lane, &CapabilitySet::default(), policy.clone()).await {
                Ok(Some(handle)) => {
                    found = true;
                    if let Err(error) = perform(&backend, &handle).await {
                        eprintln!("{error}");
                    }
                }
                Ok(None) => {}
                Err(error) => eprintln!("{error}"),
            }
        }
        if !found {
            tokio::time::sleep(IDLE).await;
        }
    }
}

fn scanners(every: Duration) -> PostgresScannerConfig {
    let other = Duration::from_secs(3600);
    PostgresScannerConfig {
        attempt_timeout_interval: other,
        lease_expiry_interval: every,
        suspension_timeout_interval: other,
        dependency_reconciler_interval: other,
        edge_cancel_dispatcher_interval: other,
        edge_cancel_reconciler_interval: other,
        budget_reset_interval: other,
        worker_registry_ttl_interval: other,
        dependency_stale_threshold_ms: PostgresScannerConfig::DEFAULT_DEP_STALE_MS,
        scanner_filter: ScannerFilter::default(),
        partition_config: PartitionConfig::default(),
    }
}

async fn serve(dsn: &str) -> Any<()> {
    let pool = pool(dsn, 4).await?;
    let backend = PostgresBackend::from_pool(pool.clone(), PartitionConfig::default());
    say(&json!({"ready": true}));
    for line in std::io::stdin().lock().lines() {
        match answer(&backend, &pool, &serde_json::from_str(&line?)?).await {
            Ok(found) => say(&found),
            Err(error) => say(&json!({"error": error.to_string()})),
        }
    }
    Ok(())
}

async fn toil(dsn: &str, options: &Value) -> Any<()> {
    let pool = pool(dsn, LOOPS as u32 + 4).await?;
    let mut backend = PostgresBackend::from_pool(pool, PartitionConfig::default());
    backend.with_scanners(scanners(Duration::from_secs(1)));
    let lanes: Vec<LaneId> = match options["sets"].as_array() {
        Some(sets) => sets.iter().filter_map(|set| set.as_str()).map(LaneId::new).collect(),
        None => vec![LaneId::new("bench")],
    };
    let lease_ms = options["lease_s"].as_u64().map_or(LEASE_MS, |seconds| 1000 * seconds as u32);
    say(&json!({"ready": true}));
    for number in 0..LOOPS {
        tokio::spawn(work(backend.clone(), lanes.clone(), number, lease_ms));
    }
    tokio::spawn(async {
        let mut told = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let done = DONE.load(Ordering::Relaxed);
            if done != told {
                told = done;
                say(&json!({"done": done}));
            }
        }
    });
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?.recv().await;
    std::process::exit(0)
}

#[tokio::main]
async fn main() -> Any<()> {
    let given: Vec<String> = std::env::args().collect();
    match given[1].as_str() {
        "client" => serve(&given[2]).await,
        _ => toil(&given[2], &serde_json::from_str(&given[3])?).await,
    }
}
