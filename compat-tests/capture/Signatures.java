import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.SerializeType;

/** Signs requests with RocketMQ's own hook and prints their frames, one per line, for record_signatures.py. */
public class Signatures {
    static final String SECRET = "secret-\u00e4\u20ac-12345678";

    public static void main(String[] arguments) throws Exception {
        String text = "K\u00f6rper \u20ac \ud83d\ude80";
        byte[] body = new byte[1024];
        for (int i = 0; i < body.length; i++) {
            body[i] = (byte) (i * 31);
        }
        print("send", request(310, Map.of("a", "producers", "b", "orders", "e", "3", "i", "KEYS\u0001" + text + "\u0002"), body), null);
        print("send with a security token", request(310, Map.of("a", "producers", "b", "orders"), body), "token-1");
        print("pull without a body", request(11, Map.of("consumerGroup", "readers", "topic", "orders", "queueId", "0"), null), null);
        print("heartbeat without fields", request(34, Map.of(), text.getBytes(StandardCharsets.UTF_8)), null);
        print("query of a key", request(12, Map.of("topic", "orders", "key", "k", "_UNIQUE_KEY_QUERY", "true"), null), null);
        print("names beyond ASCII", request(12, Map.of("\uffee", "half", "\ud83d\ude80", "rocket", "z", "last", "Z", "first"), null), null);
        RemotingCommand old = request(12, Map.of("topic", "orders", "key", "k"), null);
        hook(null).doBeforeRequest("", old);
        // Up to 4.9.3 this field was not signed.
        old.addExtField("_UNIQUE_KEY_QUERY", "false");
        old.setVersion(MQVersion.Version.V4_9_3.ordinal());
        write("query of a key by 4.9.3", old);
    }

    static RemotingCommand request(int code, Map<String, String> fields, byte[] body) {
        RemotingCommand command = RemotingCommand.createRequestCommand(code, null);
        fields.forEach(command::addExtField);
        command.setBody(body);
        return command;
    }

    static AclClientRPCHook hook(String token) {
        return new AclClientRPCHook(token == null
            ? new SessionCredentials("alice", SECRET)
            : new SessionCredentials("alice", SECRET, token));
    }

    static void print(String name, RemotingCommand command, String token) {
        command.setVersion(MQVersion.CURRENT_VERSION);
        hook(token).doBeforeRequest("", command);
        write(name, command);
    }

    static void write(String name, RemotingCommand command) {
        for (SerializeType type : List.of(SerializeType.JSON, SerializeType.ROCKETMQ)) {
            command.setSerializeTypeCurrentRPC(type);
            byte[] frame = command.encode().array();
            System.out.println(String.join("\t", name, type.name(), command.getExtFields().get("Signature"),
                Base64.getEncoder().encodeToString(frame)));
        }
    }
}
