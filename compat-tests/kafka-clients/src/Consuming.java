import com.google.gson.JsonElement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A consumer: by hand, or as a member of a group. */
final class Consuming implements Program.Handle {
    private final KafkaConsumer<byte[], byte[]> client;

    Consuming(Program.Fields fields) {
        Properties config = new Properties();
        config.put("bootstrap.servers", fields.text("bootstrap"));
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("reconnect.backoff.max.ms", "500");
        config.putAll(Login.of(fields));
        if (fields.has("group")) {
            config.put("group.id", fields.text("group"));
            config.put("isolation.level", "read_committed");
            if ("consumer".equals(fields.text("protocol"))) {
                // Its timeouts are the server's.
                config.put("group.protocol", "consumer");
            } else {
                config.put("heartbeat.interval.ms", "300");
                if (fields.has("session_ms")) {
                    config.put("session.timeout.ms", fields.text("session_ms"));
                }
            }
            if (fields.has("instance")) {
                config.put("group.instance.id", fields.text("instance"));
            }
        } else {
            config.put("fetch.max.wait.ms", fields.text("wait_ms_max"));
            config.put("max.partition.fetch.bytes", fields.text("bytes_max"));
        }
        client = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        if (fields.has("group")) {
            subscribe(fields.text("topic"));
        }
    }

    /** Subscribes to a topic, or to a pattern: clients before 4 have no class for that. */
    private void subscribe(String topic) {
        if (!topic.startsWith("^")) {
            client.subscribe(List.of(topic));
            return;
        }
        try {
            Class<?> kind = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
            Object pattern = kind.getConstructor(String.class).newInstance(topic.substring(1));
            KafkaConsumer.class.getMethod("subscribe", kind).invoke(client, pattern);
        } catch (ReflectiveOperationException reason) {
            throw new IllegalStateException(reason);
        }
    }

    @Override
    public Object take(String request, Program.Fields fields) {
        switch (request) {
            case "assign":
                List<TopicPartition> assigned = new ArrayList<>();
                for (JsonElement each : fields.get("partitions").getAsJsonArray()) {
                    assigned.add(new TopicPartition(fields.text("topic"), each.getAsInt()));
                }
                client.assign(assigned);
                assigned.forEach(each -> client.seek(each, fields.large("offset")));
                return null;
            case "seek":
                client.seek(place(fields), fields.large("offset"));
                return null;
            case "poll":
                List<Object> found = new ArrayList<>();
                client.poll(Duration.ofMillis(fields.large("ms"))).forEach(each -> found.add(told(each)));
                return found;
            case "partitions":
                return client.partitionsFor(fields.text("topic")).stream().map(PartitionInfo::partition).collect(Collectors.toList());
            case "beginning":
                return client.beginningOffsets(Set.of(place(fields))).get(place(fields));
            case "end":
                return client.endOffsets(Set.of(place(fields))).get(place(fields));
            case "offset_at":
                OffsetAndTimestamp at = client.offsetsForTimes(Map.of(place(fields), fields.large("timestamp_ms"))).get(place(fields));
                return at == null ? null : at.offset();
            case "assignment":
                return client.assignment().stream().map(TopicPartition::partition).collect(Collectors.toList());
            case "commit":
                client.commitSync();
                return null;
            case "committed":
                OffsetAndMetadata committed = client.committed(Set.of(place(fields))).get(place(fields));
                return committed == null ? null : committed.offset();
            case "close":
                client.close();
                return null;
            default:
                throw new IllegalArgumentException("a consumer has no " + request);
        }
    }

    private static TopicPartition place(Program.Fields fields) {
        return new TopicPartition(fields.text("topic"), fields.number("partition"));
    }

    private static List<Object> told(ConsumerRecord<byte[], byte[]> found) {
        List<Object> headers = new ArrayList<>();
        for (Header each : found.headers()) {
            headers.add(Arrays.asList(each.key(), text(each.value())));
        }
        return Arrays.asList(found.partition(), found.offset(), text(found.key()), text(found.value()), headers, found.timestamp());
    }

    private static String text(byte[] data) {
        return data == null ? null : Base64.getEncoder().encodeToString(data);
    }
}
