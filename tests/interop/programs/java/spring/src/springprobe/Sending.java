package springprobe;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.spring.core.RocketMQLocalRequestCallback;
import org.apache.rocketmq.spring.core.RocketMQTemplate;
import org.apache.rocketmq.spring.support.RocketMQHeaders;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Profile;
import org.springframework.messaging.Message;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.stereotype.Component;

/** Everything the template sends, once each. */
@Component
@Profile("send")
class Sending implements Application.Work {
    private static final long TIMEOUT_MS = 10_000;
    private static final int ONE_SECOND_LEVEL = 1;

    private final RocketMQTemplate template;
    private final Transactions transactions;
    @Value("${probe.topic}")
    private String topic;
    @Value("${probe.timeout}")
    private long timeout;

    Sending(RocketMQTemplate template, Transactions transactions) {
        this.template = template;
        this.transactions = transactions;
    }

    @Override
    public Void call() throws Exception {
        sendPlainly();
        sendLater();
        sendInOrder();
        sendInTransactions();
        ask();
        return null;
    }

    /** By callback: the waiting form of its client, 5.3.2, gives up as soon as its question is stored. */
    private void ask() throws Exception {
        CompletableFuture<String> answered = new CompletableFuture<>();
        template.sendAndReceive(topic + ":question", "why", new RocketMQLocalRequestCallback<String>() {
            @Override
            public void onSuccess(String reply) {
                answered.complete(reply);
            }

            @Override
            public void onException(Throwable failure) {
                answered.completeExceptionally(failure);
            }
        }, 20_000);
        Lines.print("reply", Map.of("body", answered.get(timeout, TimeUnit.SECONDS)));
    }

    private void sendPlainly() throws Exception {
        Lines.sent("sync", template.syncSend(topic + ":plain", "sync"));
        template.convertAndSend(topic + ":order", new Order("o-1", 3),
            Map.of(RocketMQHeaders.KEYS, "o-1", "shop", "7"));
        CompletableFuture<SendResult> answered = new CompletableFuture<>();
        template.asyncSend(topic + ":plain", "async", new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                answered.complete(result);
            }

            @Override
            public void onException(Throwable failure) {
                answered.completeExceptionally(failure);
            }
        });
        Lines.sent("async", answered.get(timeout, TimeUnit.SECONDS));
        List<Message<String>> batch = List.of(message("batch-0"), message("batch-1"));
        Lines.sent("batch", template.syncSend(topic + ":plain", batch, TIMEOUT_MS));
    }

    private void sendLater() {
        Lines.sent("level", template.syncSend(topic + ":later", message("level"), TIMEOUT_MS, ONE_SECOND_LEVEL));
        Lines.sent("timer", template.syncSendDelayTimeSeconds(topic + ":later", "timer", 2));
    }

    private void sendInOrder() {
        for (int n = 0; n < 12; n++) {
            String key = "shard" + n % 3;
            Lines.sent("ordered", template.syncSendOrderly(topic + ":ordered", "m-" + n % 3 + "-" + n, key));
        }
    }

    private void sendInTransactions() throws InterruptedException {
        for (String outcome : List.of("commit", "rollback", "unknown")) {
            Lines.sent("transaction", template.sendMessageInTransaction(topic + ":paid", message(outcome), outcome));
        }
        transactions.awaitCheck(timeout);
    }

    private static Message<String> message(String body) {
        return MessageBuilder.withPayload(body).build();
    }
}
