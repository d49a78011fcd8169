import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** The properties of a client that uses TLS, and logs in by JAAS or by a certificate. */
final class Login {
    static Map<String, String> of(Program.Fields fields) {
        Map<String, String> config = new HashMap<>();
        if (!fields.has("login")) {
            return config;
        }
        Map<String, String> login = fields.pairs("login");
        config.put("security.protocol", login.get("protocol"));
        config.put("ssl.truststore.type", "PEM");
        config.put("ssl.truststore.location", login.get("ca"));
        String mechanism = login.get("mechanism");
        if (mechanism != null) {
            String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
            config.put("sasl.mechanism", mechanism);
            config.put("sasl.jaas.config", String.format(
                "org.apache.kafka.common.security.%s required username=\"%s\" password=\"%s\";",
                module, login.get("user"), login.get("password")));
        }
        if (login.containsKey("certificate")) {
            config.put("ssl.keystore.type", "PEM");
            config.put("ssl.keystore.certificate.chain", text(login.get("certificate")));
            config.put("ssl.keystore.key", text(login.get("key")));
        }
        return config;
    }

    private static String text(String file) {
        try {
            return Files.readString(Path.of(file));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private Login() {}
}
