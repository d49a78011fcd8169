import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Map;
import java.util.TreeMap;

/** Runs scenarios by name, one line each, and says how each went: "@@ ok ..." or "@@ FAIL ...". */
public final class Program {
    interface Scenario {
        String run(String[] arguments) throws Exception;
    }

    private static final Map<String, Scenario> SCENARIOS = new TreeMap<>();

    public static void main(String[] arguments) throws Exception {
        Clients.register(SCENARIOS);
        Sending.register(SCENARIOS);
        Consuming.register(SCENARIOS);
        Mixing.register(SCENARIOS);
        Pulling.register(SCENARIOS);
        Popping.register(SCENARIOS);
        Protecting.register(SCENARIOS);
        Deciding.register(SCENARIOS);
        Delaying.register(SCENARIOS);
        Lasting.register(SCENARIOS);
        Retrying.register(SCENARIOS);
        Securing.register(SCENARIOS);
        Hooking.register(SCENARIOS);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("@@ ok ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.trim().split(" ");
            Scenario scenario = SCENARIOS.get(words[0]);
            try {
                if (scenario == null) {
                    throw new IllegalArgumentException("no scenario " + words[0]);
                }
                System.out.println("@@ ok " + scenario.run(words));
            } catch (Throwable error) {
                StringWriter text = new StringWriter();
                error.printStackTrace(new PrintWriter(text));
                System.out.println("@@ FAIL " + text.toString().replace("\n", " | "));
            }
        }
        System.exit(0);
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void same(Object wanted, Object found, String what) {
        check(wanted.equals(found), what + ": wanted " + wanted + ", found " + found);
    }

    interface Condition {
        boolean holds() throws Exception;
    }

    /** Waits for a condition, not for a time. */
    static void await(String what, long secondsMax, Condition condition) throws Exception {
        long until = System.nanoTime() + secondsMax * 1_000_000_000L;
        while (!condition.holds()) {
            check(System.nanoTime() < until, "waited " + secondsMax + " s for " + what);
            Thread.sleep(20);
        }
    }
}
