import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;

/** Apache Kafka's Java client behind lines of JSON; behaviours/program.py has the table of requests. */
public final class Program {
    /** What a request may be addressed to. A future is answered when it is done. */
    interface Handle {
        Object take(String request, Fields fields) throws Exception;
    }

    /** A request's fields. */
    public record Fields(JsonObject json) {
        boolean has(String name) {
            return json.has(name) && !json.get(name).isJsonNull();
        }

        JsonElement get(String name) {
            return json.get(name);
        }

        String text(String name) {
            return has(name) ? json.get(name).getAsString() : null;
        }

        int number(String name) {
            return json.get(name).getAsInt();
        }

        long large(String name) {
            return json.get(name).getAsLong();
        }

        Map<String, String> pairs(String name) {
            Map<String, String> found = new HashMap<>();
            json.getAsJsonObject(name).entrySet().stream().filter(e -> !e.getValue().isJsonNull())
                .forEach(e -> found.put(e.getKey(), e.getValue().getAsString()));
            return found;
        }
    }

    private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private static final PrintStream OUT = System.out;
    private static final Map<Integer, Handle> HANDLES = new HashMap<>();
    private static final Map<Integer, ExecutorService> THREADS = new HashMap<>();
    private static final AtomicInteger NUMBERS = new AtomicInteger(1);

    public static void main(String[] arguments) throws Exception {
        System.setOut(System.err);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Fields fields = new Fields(JsonParser.parseString(line).getAsJsonObject());
            int id = fields.number("id");
            String request = fields.text("do");
            if (fields.has("on")) {
                int number = fields.number("on");
                THREADS.get(number).execute(() -> take(id, HANDLES.get(number), request, fields));
            } else {
                open(id, request, fields);
            }
        }
        System.exit(0);
    }

    /** A client has a thread of its own: its consumers allow no other. */
    private static void open(int id, String kind, Fields fields) {
        int number = NUMBERS.getAndIncrement();
        ExecutorService thread = Executors.newSingleThreadExecutor(work -> {
            Thread made = new Thread(work, kind + "-" + number);
            made.setDaemon(true);
            return made;
        });
        try {
            Handle handle = switch (kind) {
                case "producer" -> new Producing(fields);
                case "consumer", "member" -> new Consuming(fields);
                case "admin" -> new Administering(fields);
                case "calls" -> opened("AdminCalls", fields);
                case "sharer" -> opened("Sharing", fields);
                default -> throw new IllegalArgumentException("no " + kind);
            };
            HANDLES.put(number, handle);
            THREADS.put(number, thread);
            answer(id, "ok", number);
        } catch (Exception error) {
            fail(id, error);
        }
    }

    /** By name, because it is compiled for the versions that have all its calls only. */
    private static Handle opened(String name, Fields fields) throws Exception {
        return (Handle) Class.forName(name).getConstructor(Fields.class).newInstance(fields);
    }

    private static void take(int id, Handle handle, String request, Fields fields) {
        try {
            Object result = handle.take(request, fields);
            if (result instanceof CompletableFuture<?> future) {
                future.whenComplete((value, error) -> {
                    if (error == null) {
                        answer(id, "ok", value);
                    } else {
                        fail(id, error);
                    }
                });
            } else {
                answer(id, "ok", result);
            }
        } catch (Exception error) {
            fail(id, error);
        }
    }

    private static void fail(int id, Throwable error) {
        Throwable cause = error;
        while ((cause instanceof ExecutionException || cause instanceof CompletionException) && cause.getCause() != null) {
            cause = cause.getCause();
        }
        if (cause instanceof ApiException && Errors.forException(cause) != Errors.UNKNOWN_SERVER_ERROR) {
            answer(id, "refused", List.of((int) Errors.forException(cause).code(), cause.getClass().getSimpleName() + ": " + cause.getMessage()));
        } else {
            StringWriter text = new StringWriter();
            cause.printStackTrace(new PrintWriter(text));
            answer(id, "broken", text.toString());
        }
    }

    private static void answer(int id, String kind, Object value) {
        Map<String, Object> line = new HashMap<>();
        line.put("id", id);
        line.put(kind, value);
        byte[] bytes = (GSON.toJson(line) + "\n").getBytes(StandardCharsets.UTF_8);
        synchronized (OUT) {
            OUT.write(bytes, 0, bytes.length);
            OUT.flush();
        }
    }

    private Program() {}
}
