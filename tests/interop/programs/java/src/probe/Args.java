package probe;

import com.alibaba.fastjson.JSONObject;
import java.util.List;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.remoting.RPCHook;

/** The arguments of a verb, each with its default. */
final class Args {
    private static final int TIMEOUT_SECONDS = 30;

    private final JSONObject given;

    Args(JSONObject given) {
        this.given = given;
    }

    String text(String name) {
        String value = given.getString(name);
        if (value == null) {
            throw new IllegalArgumentException("missing argument: " + name);
        }
        return value;
    }

    String text(String name, String otherwise) {
        return given.containsKey(name) ? given.getString(name) : otherwise;
    }

    int number(String name, int otherwise) {
        return given.containsKey(name) ? given.getIntValue(name) : otherwise;
    }

    long big(String name, long otherwise) {
        return given.containsKey(name) ? given.getLongValue(name) : otherwise;
    }

    boolean yes(String name) {
        return given.getBooleanValue(name);
    }

    List<String> texts(String name) {
        return given.containsKey(name) ? given.getJSONArray(name).toJavaList(String.class) : List.of();
    }

    JSONObject object(String name) {
        return given.containsKey(name) ? given.getJSONObject(name) : new JSONObject();
    }

    /** What signs requests; null without accessKey and secretKey. */
    RPCHook signer() {
        String accessKey = text("accessKey", null);
        return accessKey == null ? null : new AclClientRPCHook(new SessionCredentials(accessKey, text("secretKey")));
    }

    String namesrv() {
        return text("namesrv");
    }

    String topic() {
        return text("topic");
    }

    int timeoutSeconds() {
        return number("timeout", TIMEOUT_SECONDS);
    }
}
