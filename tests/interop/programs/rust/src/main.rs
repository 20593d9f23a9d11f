//! One verb of the Rust client a run: `probe VERB JSON`. What happened is printed as JSON lines; the
//! exit code is 0 when the verb did all it was asked to do.

mod consume;
mod send;

use std::process::exit;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rocketmq_client_rust::{ClientRuntime, ClientRuntimeConfig};
use rocketmq_observability::TelemetryRuntimeGuard;
use rocketmq_runtime::RuntimeOwner;
use serde::Deserialize;
use serde_json::{json, Value};

const GRACE_SECONDS: u64 = 20;

pub type Outcome = Result<(), Box<dyn std::error::Error>>;

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Arguments {
    pub namesrv: String,
    pub topic: String,
    pub group: String,
    pub producer: String,
    pub count: usize,
    pub body: String,
    pub size: usize,
    pub shards: usize,
    pub tags: Vec<String>,
    pub keys: String,
    pub delay_level: i32,
    pub plan: Vec<String>,
    pub wait_ms: u64,
    pub expression: String,
    pub expected: usize,
    pub failures: i32,
    pub linger_ms: u64,
    pub timeout: u64,
}

impl Default for Arguments {
    fn default() -> Self {
        Arguments {
            namesrv: String::new(),
            topic: String::new(),
            group: "probe".into(),
            producer: "probe_producer".into(),
            count: 1,
            body: "body".into(),
            size: 0,
            shards: 0,
            tags: Vec::new(),
            keys: String::new(),
            delay_level: 0,
            plan: Vec::new(),
            wait_ms: 20_000,
            expression: "*".into(),
            expected: 1,
            failures: 0,
            linger_ms: 0,
            timeout: 30,
        }
    }
}

/// Prints one line; the event comes first so that a reader can tell the lines apart.
pub fn say(event: &str, fields: Value) {
    let text = fields.to_string();
    let rest = if text == "{}" {
        "}".to_string()
    } else {
        format!(",{}", &text[1..])
    };
    println!("{{\"event\":\"{event}\"{rest}");
}

async fn run(verb: &str, client: Arc<ClientRuntime>, given: Arguments) -> Outcome {
    match verb {
        "send-sync" => send::one_by_one(client, given).await,
        "send-async" => send::at_once(client, given).await,
        "send-oneway" => send::oneway(client, given).await,
        "send-batch" => send::batch(client, given).await,
        "send-transaction" => send::in_transactions(client, given).await,
        "request" => send::request(client, given).await,
        "consume-concurrently" => consume::concurrently(client, given).await,
        "consume-orderly" => consume::orderly(client, given).await,
        _ => Err(format!("no verb {verb}").into()),
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words.len() != 3 {
        eprintln!("usage: probe VERB JSON");
        exit(2);
    }
    let given: Arguments = serde_json::from_str(&words[2]).expect("arguments are JSON");
    let limit = Duration::from_secs(given.timeout + GRACE_SECONDS);
    thread::spawn(move || {
        thread::sleep(limit);
        eprintln!("the verb took too long");
        exit(3);
    });
    let owner = RuntimeOwner::new().expect("a runtime");
    let telemetry = TelemetryRuntimeGuard::noop();
    let client = ClientRuntime::try_new(
        owner.root_context().component("probe"),
        ClientRuntimeConfig::default(),
        telemetry.handle(),
    )
    .expect("a client runtime");
    // A client that failed is not shut down: it would wait for what it left running.
    let status = owner.block_on(async {
        match run(&words[1], client.clone(), given).await {
            Ok(()) => {
                client.shutdown().await;
                0
            }
            Err(error) => {
                say("error", json!({"error": error.to_string()}));
                1
            }
        }
    });
    exit(status);
}
