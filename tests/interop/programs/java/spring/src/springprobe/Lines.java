package springprobe;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageExt;

/** Writes what happened, one JSON object a line. */
final class Lines {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static PrintStream out = System.out;

    private Lines() {
    }

    /** Keeps stdout for our lines: whatever a library prints goes to stderr. */
    static void claimStdout() {
        out = System.out;
        System.setOut(System.err);
    }

    static synchronized void print(String event, Map<String, ?> fields) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        line.putAll(fields);
        try {
            out.println(JSON.writeValueAsString(line));
        } catch (JsonProcessingException wrong) {
            throw new IllegalArgumentException(wrong);
        }
        out.flush();
    }

    static void sent(String kind, SendResult result) {
        print("sent", Map.of("kind", kind, "status", result.getSendStatus().name(), "msgId", result.getMsgId()));
    }

    static Map<String, Object> fields(String listener, MessageExt message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("listener", listener);
        fields.put("msgId", message.getMsgId());
        fields.put("tags", message.getTags());
        fields.put("keys", message.getKeys());
        fields.put("body", new String(message.getBody(), StandardCharsets.UTF_8));
        fields.put("reconsumeTimes", message.getReconsumeTimes());
        fields.put("properties", message.getProperties());
        return fields;
    }
}
