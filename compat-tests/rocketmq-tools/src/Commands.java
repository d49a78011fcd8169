import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

import org.apache.commons.cli.CommandLine;
import org.apache.commons.cli.Option;
import org.apache.commons.cli.Options;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import org.apache.rocketmq.tools.command.SubCommand;
import org.apache.rocketmq.tools.command.SubCommandException;
import org.apache.rocketmq.tools.command.offset.GetConsumerStatusCommand;

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
            if (words.length > 1 && words[1].equals("getConsumerStatus")) {
                // The tool has the command, and does not list it.
                MQAdminStartup.initCommand(new GetConsumerStatusCommand());
            } else if (words.length > 1 && words[1].equals("timeSpans")) {
                MQAdminStartup.initCommand(new TimeSpans());
            }
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

    /** What consoles ask by the tool's own class (303), and no command does: when messages were stored and read. */
    private static final class TimeSpans implements SubCommand {
        @Override
        public String commandName() {
            return "timeSpans";
        }

        @Override
        public String commandDesc() {
            return "Query the time span of each queue of a topic, and where a group is in it.";
        }

        @Override
        public Options buildCommandlineOptions(Options options) {
            options.addOption(new Option("g", "consumerGroup", true, "the group"));
            options.addOption(new Option("t", "topic", true, "the topic"));
            return options;
        }

        @Override
        public void execute(CommandLine line, Options options, RPCHook hook) throws SubCommandException {
            DefaultMQAdminExt admin = new DefaultMQAdminExt(hook);
            admin.setInstanceName(Long.toString(System.nanoTime()));
            try {
                admin.start();
                for (var span : admin.queryConsumeTimeSpan(line.getOptionValue("t"), line.getOptionValue("g"))) {
                    System.out.printf("%d %d %d %d %d%n", span.getMessageQueue().getQueueId(),
                            span.getMinTimeStamp(), span.getConsumeTimeStamp(), span.getMaxTimeStamp(),
                            span.getDelayTime());
                }
            } catch (Exception error) {
                throw new SubCommandException("timeSpans failed", error);
            } finally {
                admin.shutdown();
            }
        }
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
