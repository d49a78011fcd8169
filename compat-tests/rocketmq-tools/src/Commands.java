import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * mqadmin's commands in one process: a line of words behind tabs in, what the command prints out. The
 * first word says after how many seconds a command that does not end is interrupted.
 */
public class Commands {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("@@ end");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            forget();
            Thread running = new Thread(
                    () -> MQAdminStartup.main0(Arrays.copyOfRange(words, 1, words.length), null));
            running.start();
            running.join(Long.parseLong(words[0]) * 1000);
            boolean isOver = !running.isAlive();
            running.interrupt();
            running.join(10_000);
            System.out.flush();
            System.err.flush();
            System.out.println("\n@@ " + (isOver ? "end" : "interrupted"));
        }
        System.exit(0);
    }

    /** The tool adds all its commands again with each run, and some of them keep a client that was shut down. */
    private static void forget() throws IllegalAccessException {
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            if (List.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                ((List<?>) field.get(null)).clear();
            }
        }
    }
}
