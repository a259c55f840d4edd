import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.sql.SQLException;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobExecutionContext;
import org.quartz.JobExecutionException;
import org.quartz.impl.StdSchedulerFactory;
import org.quartz.utils.DBConnectionManager;

/**
 * A node of Quartz, clustered over JDBC, with its own tables. Each request to /measure makes it fire until DUE
 * jobs have run.
 */
public class Quartz {
  static final int DUE = Integer.parseInt(System.getenv("DUE"));
  static volatile CountDownLatch left;

  /** The job of all triggers. */
  public static class StoreEvent implements Job {
    public void execute(JobExecutionContext context) throws JobExecutionException {
      try (var connection = DBConnectionManager.getInstance().getConnection("bench");
          var statement = connection.prepareStatement(System.getenv("STORE_EVENT"))) {
        statement.execute();
      } catch (SQLException error) {
        throw new JobExecutionException(error);
      }
      left.countDown();
    }
  }

  public static void main(String[] args) throws Exception {
    var settings = new Properties();
    settings.putAll(Map.of(
        "org.quartz.scheduler.instanceName", "bench",
        "org.quartz.scheduler.instanceId", "AUTO",
        "org.quartz.scheduler.batchTriggerAcquisitionMaxCount", "10",
        "org.quartz.threadPool.threadCount", "10",
        "org.quartz.jobStore.class", "org.quartz.impl.jdbcjobstore.JobStoreTX",
        "org.quartz.jobStore.driverDelegateClass", "org.quartz.impl.jdbcjobstore.PostgreSQLDelegate",
        "org.quartz.jobStore.isClustered", "true",
        "org.quartz.jobStore.dataSource", "bench"));
    settings.putAll(Map.of(
        "org.quartz.dataSource.bench.provider", "hikaricp",
        "org.quartz.dataSource.bench.driver", "org.postgresql.Driver",
        "org.quartz.dataSource.bench.URL", System.getenv("JDBC_URL"),
        "org.quartz.dataSource.bench.maxConnections", "20"));
    // When Java runs a source file, only this class loader knows the class of the job.
    Thread.currentThread().setContextClassLoader(Quartz.class.getClassLoader());
    var scheduler = new StdSchedulerFactory(settings).getScheduler();
    try (var tables = StdSchedulerFactory.class.getResourceAsStream("/org/quartz/impl/jdbcjobstore/tables_postgres.sql");
        var connection = DBConnectionManager.getInstance().getConnection("bench");
        var statement = connection.createStatement()) {
      statement.execute(new String(tables.readAllBytes()));
    }
    scheduler.addJob(JobBuilder.newJob(StoreEvent.class).withIdentity("job").storeDurably().build(), true);

    var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv("PORT"))), 0);
    server.createContext("/", exchange -> exchange.sendResponseHeaders(204, -1));
    server.createContext("/measure", exchange -> {
      left = new CountDownLatch(DUE);
      try {
        scheduler.start();
        if (!left.await(2, TimeUnit.MINUTES)) throw new TimeoutException(left.getCount() + " jobs have not run");
        scheduler.standby();
      } catch (Exception error) {
        throw new RuntimeException(error);
      }
      var fired = String.valueOf(DUE).getBytes();
      exchange.sendResponseHeaders(200, fired.length);
      exchange.getResponseBody().write(fired);
      exchange.close();
    });
    server.start();
  }
}
