package springprobe;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import org.springframework.boot.Banner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * An application of Spring Boot with RocketMQ's starter: {@code Application send|listen JSON}. The
 * verb is a profile: what has it is part of the application. What happened is printed as JSON lines;
 * the exit code is 0 when everything was sent, or everything came that should.
 */
@SpringBootApplication
public class Application {
    private static final int GRACE_SECONDS = 20;

    /** What an application does between start and stop. */
    interface Work extends Callable<Void> {
    }

    public static void main(String[] argv) throws Exception {
        Lines.claimStdout();
        Map<String, Object> given = new ObjectMapper().readValue(argv[1], new TypeReference<>() { });
        endByForceAfter((int) given.get("timeout") + GRACE_SECONDS);
        SpringApplication application = new SpringApplication(Application.class);
        application.setAdditionalProfiles(argv[0]);
        application.setBannerMode(Banner.Mode.OFF);
        application.setDefaultProperties(settings(given));
        int status = 1;
        try (ConfigurableApplicationContext context = application.run()) {
            context.getBean(Work.class).call();
            status = 0;
        } catch (Throwable failure) {
            failure.printStackTrace();
            Lines.print("error", Map.of("error", failure.toString()));
        }
        System.exit(status);
    }

    /** As they would stand in the application's own file. */
    private static Map<String, Object> settings(Map<String, Object> given) {
        Map<String, Object> settings = new HashMap<>();
        given.forEach((key, value) -> settings.put("probe." + key, value));
        settings.put("rocketmq.name-server", given.get("namesrv"));
        settings.put("rocketmq.producer.group", given.get("producer"));
        settings.put("rocketmq.producer.send-message-timeout", 10_000);
        return settings;
    }

    private static void endByForceAfter(int seconds) {
        Thread watchdog = new Thread(() -> {
            try {
                Thread.sleep(seconds * 1000L);
            } catch (InterruptedException stopped) {
                return;
            }
            System.err.println("the verb took longer than " + seconds + " s");
            Runtime.getRuntime().halt(3);
        });
        watchdog.setDaemon(true);
        watchdog.start();
    }
}
