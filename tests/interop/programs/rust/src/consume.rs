//! Push consumers that count, and fail each message as often as asked before it counts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rocketmq_client_rust::{
    ClientRuntime, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeOrderlyContext,
    ConsumeOrderlyStatus, DefaultMQPushConsumer, MQPushConsumer,
};
use rocketmq_model::common::consumer::consume_from_where::ConsumeFromWhere;
use rocketmq_model::common::message::message_ext::MessageExt;
use rocketmq_model::common::message::MessageTrait;
use serde_json::json;

use crate::{say, Arguments, Outcome};

/// Whether the message is to come again; else it counts.
fn fails(counted: &AtomicUsize, failures: i32, message: &MessageExt) -> bool {
    if message.reconsume_times() < failures {
        say_message("failed", message);
        return true;
    }
    say_message("message", message);
    counted.fetch_add(1, Ordering::SeqCst);
    false
}

pub fn say_message(event: &str, message: &MessageExt) {
    let properties: HashMap<String, String> = message
        .properties()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    let body = message
        .body()
        .map(|body| String::from_utf8_lossy(&body).to_string());
    say(
        event,
        json!({
            "msgId": message.msg_id().to_string(),
            "topic": message.topic().to_string(),
            "queueId": message.queue_id(),
            "queueOffset": message.queue_offset(),
            "commitLogOffset": message.commit_log_offset(),
            "tags": message.get_tags().map(|tags| tags.to_string()),
            "keys": message.get_keys().map(|keys| keys.to_string()),
            "body": body,
            "sysFlag": message.sys_flag(),
            "reconsumeTimes": message.reconsume_times(),
            "properties": properties,
        }),
    );
}

fn made(client: Arc<ClientRuntime>, given: &Arguments) -> DefaultMQPushConsumer {
    DefaultMQPushConsumer::builder(client)
        .consumer_group(given.group.clone())
        .name_server_addr(given.namesrv.clone())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .build()
}

pub async fn concurrently(client: Arc<ClientRuntime>, given: Arguments) -> Outcome {
    let count: Arc<AtomicUsize> = Arc::default();
    let (counted, failures) = (count.clone(), given.failures);
    let mut consumer = made(client, &given);
    consumer.register_message_listener_concurrently(
        move |messages: &[&MessageExt], _context: &ConsumeConcurrentlyContext| {
            let failed = messages
                .iter()
                .any(|message| fails(&counted, failures, message));
            Ok(if failed {
                ConsumeConcurrentlyStatus::ReconsumeLater
            } else {
                ConsumeConcurrentlyStatus::ConsumeSuccess
            })
        },
    );
    until_complete(consumer, given, count).await
}

pub async fn orderly(client: Arc<ClientRuntime>, given: Arguments) -> Outcome {
    let count: Arc<AtomicUsize> = Arc::default();
    let (counted, failures) = (count.clone(), given.failures);
    let mut consumer = made(client, &given);
    consumer.register_message_listener_orderly(
        move |messages: &[&MessageExt], _context: &mut ConsumeOrderlyContext| {
            let failed = messages
                .iter()
                .any(|message| fails(&counted, failures, message));
            Ok(if failed {
                ConsumeOrderlyStatus::SuspendCurrentQueueAMoment
            } else {
                ConsumeOrderlyStatus::Success
            })
        },
    );
    until_complete(consumer, given, count).await
}

async fn until_complete(
    mut consumer: DefaultMQPushConsumer,
    given: Arguments,
    count: Arc<AtomicUsize>,
) -> Outcome {
    consumer
        .subscribe(given.topic.clone(), given.expression.clone())
        .await?;
    consumer.start().await?;
    say("ready", json!({}));
    let end = Instant::now() + Duration::from_secs(given.timeout);
    while count.load(Ordering::SeqCst) < given.expected {
        if Instant::now() > end {
            return Err(format!("only {count:?} messages arrived in time").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_millis(given.linger_ms)).await;
    consumer.shutdown().await;
    say("done", json!({"count": count.load(Ordering::SeqCst)}));
    Ok(())
}
