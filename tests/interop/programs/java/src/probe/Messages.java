package probe;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.common.message.Message;

/** The messages that the sending verbs are asked for. */
final class Messages {
    private Messages() {
    }

    static List<Message> of(Args args) {
        int count = args.number("count", 1);
        int shards = args.number("shards", 0);
        List<String> tags = args.texts("tags");
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Message message = new Message(args.topic(), body(args, i, shards));
            if (!tags.isEmpty()) {
                message.setTags(tags.get(i % tags.size()));
            }
            if (args.text("keys", null) != null) {
                message.setKeys(args.text("keys") + i);
            }
            if (args.number("delayLevel", 0) > 0) {
                message.setDelayTimeLevel(args.number("delayLevel", 0));
            }
            delay(message, args);
            args.object("properties").forEach((name, value) -> message.putUserProperty(name, value.toString()));
            if (args.yes("numbered")) {
                message.putUserProperty("n", String.valueOf(i));
            }
            messages.add(message);
        }
        return messages;
    }

    /** Any time instead of a level: only clients of 5.x have it. */
    private static void delay(Message message, Args args) {
        if (args.big("deliverAtMs", 0) > 0) {
            Newer.call(message, "setDeliverTimeMs", args.big("deliverAtMs", 0));
        }
        if (args.big("delayMs", 0) > 0) {
            Newer.call(message, "setDelayTimeMs", args.big("delayMs", 0));
        }
        if (args.big("delaySec", 0) > 0) {
            Newer.call(message, "setDelayTimeSec", args.big("delaySec", 0));
        }
    }

    /** {@code prefix-INDEX}, or {@code prefix-SHARD-INDEX}, filled up to the size asked for. */
    private static byte[] body(Args args, int index, int shards) {
        StringBuilder text = new StringBuilder(args.text("body", "body")).append('-');
        if (shards > 0) {
            text.append(index % shards).append('-');
        }
        text.append(index);
        int size = args.number("size", 0);
        while (text.length() < size) {
            text.append('.');
        }
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }

    /** The index at the end of a body. */
    static int index(Message message) {
        String body = new String(message.getBody(), StandardCharsets.UTF_8);
        return Integer.parseInt(body.substring(body.lastIndexOf('-') + 1));
    }
}
