import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a share group, with implicit or explicit acknowledgement. */
public final class Sharing implements Program.Handle {
    private final KafkaShareConsumer<byte[], byte[]> client;
    /** What was polled and not acknowledged yet, by partition and offset. */
    private final Map<List<Object>, ConsumerRecord<byte[], byte[]>> held = new TreeMap<>((a, b) -> a.toString().compareTo(b.toString()));
    private final boolean isExplicit;

    public Sharing(Program.Fields fields) {
        isExplicit = fields.text("mode").equals("explicit");
        Properties config = new Properties();
        config.put("bootstrap.servers", fields.text("bootstrap"));
        config.put("group.id", fields.text("group"));
        config.put("share.acknowledgement.mode", fields.text("mode"));
        config.put("reconnect.backoff.max.ms", "500");
        config.put("default.api.timeout.ms", "20000");
        if (fields.has("records_max")) {
            config.put("max.poll.records", fields.text("records_max"));
            config.put("share.acquire.mode", "record_limit");
        }
        config.putAll(Login.of(fields));
        client = new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        client.subscribe(List.of(fields.text("topic")));
    }

    @Override
    public Object take(String request, Program.Fields fields) {
        switch (request) {
            case "poll":
                List<Object> found = new ArrayList<>();
                client.poll(Duration.ofMillis(fields.large("ms"))).forEach(each -> found.add(told(each)));
                return found;
            case "acknowledge":
                List<Object> place = List.of(fields.number("partition"), fields.large("offset"));
                AcknowledgeType type = AcknowledgeType.forId((byte) fields.number("type"));
                client.acknowledge(type == AcknowledgeType.RENEW ? held.get(place) : held.remove(place), type);
                return null;
            case "commit":
                Map<String, Object> outcomes = new TreeMap<>();
                client.commitSync().forEach((where, error) -> outcomes.put(name(where), error.map(each -> (int) Errors.forException(each).code()).orElse(0)));
                return outcomes;
            case "lock_ms":
                return client.acquisitionLockTimeoutMs().orElse(null);
            case "close":
                client.close();
                return null;
            default:
                throw new IllegalArgumentException("a member of a share group has no " + request);
        }
    }

    private static String name(TopicIdPartition where) {
        return Integer.toString(where.partition());
    }

    private List<Object> told(ConsumerRecord<byte[], byte[]> found) {
        if (isExplicit) {
            held.put(List.of(found.partition(), found.offset()), found);
        }
        String value = found.value() == null ? null : Base64.getEncoder().encodeToString(found.value());
        return Arrays.asList(found.partition(), found.offset(), value, (int) found.deliveryCount().orElse((short) 0));
    }
}
