import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A producer. */
final class Producing implements Program.Handle {
    private final KafkaProducer<byte[], byte[]> client;

    Producing(Program.Fields fields) {
        Properties config = new Properties();
        config.put("bootstrap.servers", fields.text("bootstrap"));
        config.put("acks", fields.text("acks"));
        config.put("enable.idempotence", fields.text("is_idempotent"));
        config.put("compression.type", fields.text("codec"));
        config.put("linger.ms", fields.text("linger_ms"));
        config.put("max.request.size", fields.text("request_bytes_max"));
        config.put("reconnect.backoff.max.ms", "500");
        config.putAll(Login.of(fields));
        if (fields.has("transactional_id")) {
            config.put("transactional.id", fields.text("transactional_id"));
        }
        if (fields.has("transaction_timeout_ms")) {
            config.put("transaction.timeout.ms", fields.text("transaction_timeout_ms"));
        }
        client = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        if (fields.has("transactional_id")) {
            client.initTransactions();
        }
    }

    @Override
    public Object take(String request, Program.Fields fields) {
        switch (request) {
            case "send":
                return send(fields);
            case "flush":
                client.flush();
                return null;
            case "begin":
                client.beginTransaction();
                return null;
            case "commit":
                client.commitTransaction();
                return null;
            case "abort":
                client.abortTransaction();
                return null;
            case "close":
                client.close();
                return null;
            default:
                throw new IllegalArgumentException("a producer has no " + request);
        }
    }

    private CompletableFuture<List<Object>> send(Program.Fields fields) {
        List<Header> headers = new ArrayList<>();
        for (JsonElement each : fields.get("headers").getAsJsonArray()) {
            JsonArray pair = each.getAsJsonArray();
            headers.add(new RecordHeader(pair.get(0).getAsString(), bytes(pair.get(1))));
        }
        ProducerRecord<byte[], byte[]> sent = new ProducerRecord<>(
            fields.text("topic"),
            fields.has("partition") ? (Integer) fields.number("partition") : null,
            fields.has("timestamp_ms") ? (Long) fields.large("timestamp_ms") : null,
            bytes(fields.get("key")),
            bytes(fields.get("value")),
            headers);
        CompletableFuture<List<Object>> outcome = new CompletableFuture<>();
        client.send(sent, (metadata, error) -> {
            if (error == null) {
                outcome.complete(List.of(metadata.partition(), metadata.offset()));
            } else {
                outcome.completeExceptionally(error);
            }
        });
        return outcome;
    }

    static byte[] bytes(JsonElement text) {
        return text.isJsonNull() ? null : Base64.getDecoder().decode(text.getAsString());
    }
}
