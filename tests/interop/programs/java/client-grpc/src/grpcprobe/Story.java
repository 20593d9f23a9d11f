package grpcprobe;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/**
 * The official Java client for gRPC, which speaks to RocketMQ's proxy: {@code Story story JSON}. One
 * run sends every type of messages and reads them with simple and push consumers, all at the same
 * time. What happened is printed as JSON lines; the exit code is 0 when everything came that should.
 */
public final class Story {
    private static final int GRACE_SECONDS = 20;
    private static final Duration INVISIBLE = Duration.ofSeconds(15);
    private static final Gson JSON = new Gson();
    private static PrintStream out;

    private final ClientServiceProvider provider = ClientServiceProvider.loadService();
    private final JsonObject args;
    private final ClientConfiguration settings;
    private final Map<String, Set<String>> missing = new TreeMap<>();
    private final Set<String> failures = Collections.synchronizedSet(new HashSet<>());
    private final long end;

    private Story(JsonObject args) {
        this.args = args;
        settings = ClientConfiguration.newBuilder()
            .setEndpoints(args.get("endpoints").getAsString()).enableSsl(false)
            .setRequestTimeout(Duration.ofSeconds(5)).build();
        args.getAsJsonObject("expected").entrySet().forEach(entry -> {
            Set<String> bodies = Collections.synchronizedSet(new HashSet<>());
            entry.getValue().getAsJsonArray().forEach(body -> bodies.add(body.getAsString()));
            missing.put(entry.getKey(), bodies);
        });
        args.getAsJsonArray("fails").forEach(body -> failures.add(body.getAsString()));
        end = System.currentTimeMillis() + args.get("timeout").getAsLong() * 1000;
    }

    public static void main(String[] argv) throws Exception {
        out = System.out;
        System.setOut(System.err);
        JsonObject args = JSON.fromJson(argv[1], JsonObject.class);
        endByForceAfter(args.get("timeout").getAsInt() + GRACE_SECONDS);
        int status = 1;
        try {
            status = new Story(args).run();
        } catch (Throwable failure) {
            failure.printStackTrace();
            say("error", Map.of("error", failure.toString()));
        }
        // Closing would wait for polls that are under way.
        Runtime.getRuntime().halt(status);
    }

    private int run() throws Exception {
        simple("normal", topic("normal"));
        push("push", topic("normal"), "a");
        push("fifo", topic("fifo"), "*");
        push("dead", topic("dead"), "*");
        simple("delay", topic("delay"));
        simple("transaction", topic("transaction"));
        say("ready", Map.of());
        Producer producer = producer();
        sendAll(producer);
        refused(producer);
        while (!isOver()) {
            Thread.sleep(100);
        }
        // What should not come has had its chance.
        Thread.sleep(args.get("lingerMs").getAsLong());
        Map<String, Object> left = new HashMap<>();
        missing.forEach((kind, bodies) -> {
            if (!bodies.isEmpty()) {
                left.put(kind, new ArrayList<>(bodies));
            }
        });
        say("done", Map.of("missing", left));
        return left.isEmpty() ? 0 : 1;
    }

    // reading

    private void simple(String kind, String topic) throws ClientException {
        SimpleConsumer consumer = provider.newSimpleConsumerBuilder().setClientConfiguration(settings)
            .setConsumerGroup(group(kind)).setAwaitDuration(Duration.ofSeconds(2))
            .setSubscriptionExpressions(Map.of(topic, FilterExpression.SUB_ALL)).build();
        Thread reader = new Thread(() -> {
            while (!isOver()) {
                try {
                    for (MessageView message : consumer.receive(16, INVISIBLE)) {
                        came(kind, message);
                        consumer.ack(message);
                    }
                } catch (ClientException failure) {
                    say("again", Map.of("error", failure.toString()));
                }
            }
        });
        reader.setDaemon(true);
        reader.start();
    }

    private PushConsumer push(String kind, String topic, String tags) throws ClientException {
        return provider.newPushConsumerBuilder().setClientConfiguration(settings)
            .setConsumerGroup(group(kind))
            .setSubscriptionExpressions(Map.of(topic, new FilterExpression(tags)))
            .setMessageListener(message -> {
                if (failures.remove(body(message)) || kind.equals("dead")) {
                    say("failed", fields(kind, message));
                    return ConsumeResult.FAILURE;
                }
                came(kind, message);
                return ConsumeResult.SUCCESS;
            }).build();
    }

    private void came(String kind, MessageView message) {
        say("message", fields(kind, message));
        missing.get(kind).remove(body(message));
    }

    private static Map<String, Object> fields(String kind, MessageView message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("kind", kind);
        fields.put("body", body(message));
        fields.put("msgId", message.getMessageId().toString());
        fields.put("tag", message.getTag().orElse(null));
        fields.put("keys", new ArrayList<>(message.getKeys()));
        fields.put("attempt", message.getDeliveryAttempt());
        fields.put("messageGroup", message.getMessageGroup().orElse(null));
        fields.put("at", System.currentTimeMillis());
        fields.put("properties", message.getProperties());
        return fields;
    }

    private static String body(MessageView message) {
        return StandardCharsets.UTF_8.decode(message.getBody()).toString();
    }

    // sending

    private Producer producer() throws ClientException {
        List<String> topics = new ArrayList<>();
        args.getAsJsonObject("topics").entrySet().forEach(e -> topics.add(e.getValue().getAsString()));
        return provider.newProducerBuilder().setClientConfiguration(settings)
            .setTopics(topics.toArray(new String[0]))
            .setTransactionChecker(message -> {
                say("checked", Map.of("body", body(message), "msgId", message.getMessageId().toString()));
                return TransactionResolution.COMMIT;
            }).build();
    }

    private void sendAll(Producer producer) throws ClientException {
        for (int i = 0; i < 6; i++) {
            String body = "normal-" + i;
            Message message = message("normal", body).setTag("ab".substring(i % 2, i % 2 + 1))
                .setKeys("k" + i).addProperty("color", "blue").build();
            sent("normal", body, producer.send(message), Map.of());
        }
        for (int i = 0; i < 8; i++) {
            String body = "fifo-" + i % 2 + "-" + i;
            Message message = message("fifo", body).setMessageGroup("shard" + i % 2).build();
            sent("fifo", body, producer.send(message), Map.of());
        }
        sent("dead", "dead-0", producer.send(message("dead", "dead-0").build()), Map.of());
        long due = System.currentTimeMillis() + args.get("delayMs").getAsLong();
        Message delayed = message("delay", "delay-0").setDeliveryTimestamp(due).build();
        sent("delay", "delay-0", producer.send(delayed), Map.of("due", due));
        for (String decision : List.of("commit", "rollback", "unknown")) {
            String body = "transaction-" + decision;
            Transaction transaction = producer.beginTransaction();
            sent("transaction", body, producer.send(message("transaction", body).build(), transaction), Map.of());
            if (decision.equals("commit")) {
                transaction.commit();
            } else if (decision.equals("rollback")) {
                transaction.rollback();
            }
        }
    }

    /** A message of another type than its topic is for. */
    private void refused(Producer producer) {
        try {
            producer.send(message("normal", "wrong").setMessageGroup("g").build());
        } catch (Exception refusal) {
            say("refused", Map.of("error", refusal.toString()));
        }
    }

    private MessageBuilder message(String kind, String body) {
        return provider.newMessageBuilder().setTopic(topic(kind))
            .setBody(body.getBytes(StandardCharsets.UTF_8));
    }

    private static void sent(String kind, String body, SendReceipt receipt, Map<String, ?> more) {
        Map<String, Object> fields = new LinkedHashMap<>(more);
        fields.put("kind", kind);
        fields.put("body", body);
        fields.put("msgId", receipt.getMessageId().toString());
        say("sent", fields);
    }

    // the rest

    private String topic(String kind) {
        return args.getAsJsonObject("topics").get(kind).getAsString();
    }

    private String group(String kind) {
        return args.getAsJsonObject("groups").get(kind).getAsString();
    }

    private boolean isOver() {
        return System.currentTimeMillis() > end || missing.values().stream().allMatch(Set::isEmpty);
    }

    private static synchronized void say(String event, Map<String, ?> fields) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        line.putAll(fields);
        out.println(JSON.toJson(line));
        out.flush();
    }

    private static void endByForceAfter(int seconds) {
        Thread watchdog = new Thread(() -> {
            try {
                Thread.sleep(seconds * 1000L);
            } catch (InterruptedException stopped) {
                return;
            }
            Runtime.getRuntime().halt(3);
        });
        watchdog.setDaemon(true);
        watchdog.start();
    }
}
