//! Every way of sending that the producers have.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{mpsc, Arc, Mutex};
use std::time::{Duration, Instant};

use rocketmq_client_rust::{
    ClientRuntime, DefaultMQProducer, LocalTransactionState, TransactionListener,
    TransactionMQProducer,
};
use rocketmq_model::common::message::message_ext::MessageExt;
use rocketmq_model::common::message::message_single::Message;
use rocketmq_model::common::message::MessageTrait;
use rocketmq_model::result::SendResult;
use serde_json::json;

use crate::consume::say_message;
use crate::{say, Arguments, Outcome};

const SEND_TIMEOUT_MS: u32 = 10_000;

async fn started(
    client: Arc<ClientRuntime>,
    given: &Arguments,
) -> Result<DefaultMQProducer, Box<dyn std::error::Error>> {
    let mut producer = DefaultMQProducer::builder(client)
        .producer_group(given.producer.clone())
        .name_server_addr(given.namesrv.clone())
        .send_msg_timeout(SEND_TIMEOUT_MS)
        .build();
    producer.start().await?;
    Ok(producer)
}

/// The same as those of the Java program: prefix-INDEX or prefix-SHARD-INDEX.
fn messages(given: &Arguments) -> Vec<Message> {
    (0..given.count)
        .map(|index| message(given, index))
        .collect()
}

fn message(given: &Arguments, index: usize) -> Message {
    let name = match given.shards {
        0 => format!("{}-{index}", given.body),
        shards => format!("{}-{}-{index}", given.body, index % shards),
    };
    let body = format!("{name:.<width$}", width = given.size);
    let mut message = Message::builder()
        .topic(given.topic.clone())
        .body_slice(body.as_bytes());
    if !given.tags.is_empty() {
        message = message.tags(given.tags[index % given.tags.len()].clone());
    }
    if !given.keys.is_empty() {
        message = message.key(format!("{}{index}", given.keys));
    }
    if given.delay_level > 0 {
        message = message.delay_level(given.delay_level);
    }
    message.build_unchecked()
}

fn say_sent(index: usize, result: &SendResult) {
    say(
        "sent",
        json!({
            "index": index,
            "status": result.send_status,
            "msgId": result.msg_id.as_ref().map(|id| id.to_string()),
            "offsetMsgId": result.offset_msg_id,
            "queueId": result.message_queue.as_ref().map(|queue| queue.queue_id()),
            "queueOffset": result.queue_offset,
        }),
    );
}

pub async fn one_by_one(client: Arc<ClientRuntime>, given: Arguments) -> Outcome {
    let mut producer = started(client, &given).await?;
    for (index, message) in messages(&given).into_iter().enumerate() {
        let result = match given.shards {
            0 => producer.send(message).await?,
            shards => {
                producer
                    .send_with_selector(
                        message,
                        |queues, _message, shard: &usize| {
                            Some(queues[shard % queues.len()].clone())
                        },
                        index % shards,
                    )
                    .await?
            }
        };
        say_sent(index, &result.ok_or("no answer")?);
    }
    say("done", json!({"count": given.count}));
    producer.shutdown().await;
    Ok(())
}

pub async fn at_once(client: Arc<ClientRuntime>, given: Arguments) -> Outcome {
    let mut producer = started(client, &given).await?;
    let (answered, answers) = mpsc::channel();
    for (index, message) in messages(&given).into_iter().enumerate() {
        let answered = answered.clone();
        producer
            .send_with_callback(message, move |result, error| {
                if let Some(result) = result {
                    say_sent(index, result);
                }
                let _ = answered.send(error.map(|error| error.to_string()));
            })
            .await?;
    }
    let mut left = given.count;
    let end = Instant::now() + Duration::from_secs(given.timeout);
    while left > 0 && Instant::now() < end {
        match answers.try_recv() {
            Ok(None) => left -= 1,
            Ok(Some(error)) => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    if left > 0 {
        return Err(format!("{left} sends were not answered").into());
    }
    say("done", json!({"count": given.count}));
    producer.shutdown().await;
    Ok(())
}

pub async fn oneway(client: Arc<ClientRuntime>, given: Arguments) -> Outcome {
    let mut producer = started(client, &given).await?;
    for message in messages(&given) {
        producer.send_oneway(message).await?;
    }
    // One answered send: what was sent before it on the same connection has left by then.
    let fence = Message::builder()
        .topic(given.topic.clone())
        .body_slice(b"fence")
        .build_unchecked();
    say_sent(
        given.count,
        &producer.send(fence).await?.ok_or("no answer")?,
    );
    say("done", json!({"count": given.count}));
    producer.shutdown().await;
    Ok(())
}

pub async fn batch(client: Arc<ClientRuntime>, given: Arguments) -> Outcome {
    let mut producer = started(client, &given).await?;
    say_sent(0, &producer.send_batch(messages(&given)).await?);
    say("done", json!({"count": given.count}));
    producer.shutdown().await;
    Ok(())
}

pub async fn request(client: Arc<ClientRuntime>, given: Arguments) -> Outcome {
    let mut producer = started(client, &given).await?;
    for (index, question) in messages(&given).into_iter().enumerate() {
        match producer.request(question, given.wait_ms).await {
            Ok(reply) => {
                let body = reply
                    .get_body()
                    .map(|body| String::from_utf8_lossy(body).to_string());
                say("reply", json!({"index": index, "body": body}));
            }
            Err(error) => say("late", json!({"index": index, "error": error.to_string()})),
        }
    }
    say("done", json!({"count": given.count}));
    producer.shutdown().await;
    Ok(())
}

/// Says what becomes of each message, in turn: the first word is the answer of the local
/// transaction, the others those of the checks, the last repeated. As in the Java program.
struct Plan {
    words: Vec<String>,
    asked: Mutex<HashMap<String, usize>>,
    decided: mpsc::Sender<()>,
}

impl Plan {
    fn next(&self, body: String) -> LocalTransactionState {
        let index: usize = body
            .rsplit('-')
            .next()
            .and_then(|text| text.parse().ok())
            .expect("an index");
        let mut asked = self.asked.lock().expect("nobody panics");
        let times = asked.entry(body).or_default();
        let words: Vec<&str> = self.words[index % self.words.len()].split(' ').collect();
        let word = words[(*times).min(words.len() - 1)];
        *times += 1;
        if word != "unknown" {
            let _ = self.decided.send(());
        }
        match word {
            "commit" => LocalTransactionState::CommitMessage,
            "rollback" => LocalTransactionState::RollbackMessage,
            _ => LocalTransactionState::Unknown,
        }
    }
}

fn text(body: Option<&[u8]>) -> String {
    String::from_utf8_lossy(body.unwrap_or_default()).to_string()
}

impl TransactionListener for Plan {
    fn execute_local_transaction(
        &self,
        message: &dyn MessageTrait,
        _given: Option<&(dyn Any + Send + Sync)>,
    ) -> LocalTransactionState {
        self.next(text(message.get_body().map(|body| &body[..])))
    }

    fn check_local_transaction(&self, message: &MessageExt) -> LocalTransactionState {
        say_message("checked", message);
        self.next(text(message.get_body().map(|body| &body[..])))
    }
}

pub async fn in_transactions(client: Arc<ClientRuntime>, given: Arguments) -> Outcome {
    let (decided, decisions) = mpsc::channel();
    let mut producer = TransactionMQProducer::builder(client)
        .producer_group(given.producer.clone())
        .name_server_addr(given.namesrv.clone())
        .topics(vec![given.topic.clone()])
        .transaction_listener(Plan {
            words: given.plan.clone(),
            asked: Mutex::default(),
            decided,
        })
        .build();
    producer.start().await?;
    for (index, message) in messages(&given).into_iter().enumerate() {
        let result = producer
            .send_message_in_transaction::<(), _>(message, None)
            .await?;
        say_sent(index, result.send_result.as_ref().ok_or("no answer")?);
    }
    let end = Instant::now() + Duration::from_secs(given.timeout);
    let mut left = given.count;
    while left > 0 && Instant::now() < end {
        match decisions.try_recv() {
            Ok(()) => left -= 1,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    if left > 0 {
        return Err(format!("{left} transactions were never decided").into());
    }
    say("done", json!({"count": given.count}));
    // The outcome of a check leaves one-way, and a broker that did not take it checks again.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    producer.shutdown().await;
    Ok(())
}
