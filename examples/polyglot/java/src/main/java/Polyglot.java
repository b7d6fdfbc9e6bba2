import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.UUID;

/** An invoice that waits for its payment, in Java with JDBC. See ../README.md for how to run it. */
public final class Polyglot {
    private static final String LANE = "invoices-java";

    private static final String CREATE = """
            select execution_id, outcome, public_state
              from ff_create_execution(p_lane_id => ?, p_payload => ?, p_idempotency_key => ?)""";
    private static final String CLAIM = """
            select handle, handle_kind, attempt_index, lease_epoch, lease_expires_at_ms, payload
              from ff_claim(p_lane_id => ?, p_worker_id => 'booker', p_worker_instance_id => ?)""";
    private static final String RENEW = "select lease_epoch, lease_expires_at_ms from ff_renew(p_handle => ?)";
    private static final String SUSPEND = """
            select outcome, waitpoint_id, waitpoint_token
              from ff_suspend(p_handle => ?, p_reason_code => 'waiting_for_callback', p_timeout_ms => 86400000,
                              p_condition => '{"kind": "single", "waitpoint_key": "payment",
                                               "matcher": {"by_name": "paid"}}')""";
    private static final String DELIVER = """
            select outcome, public_state from ff_deliver_signal(?, ?, ?, 'paid', p_payload => ?)""";
    private static final String OBSERVE = "select signal_name, payload from ff_observe_signals(p_handle => ?)";
    private static final String COMPLETE = """
            select public_state, replayed from ff_complete(p_handle => ?, p_result => ?)""";

    private record Lease(String handle, String kind, int attempt, long epoch, long expiresAtMs, byte[] payload) {}

    private record Waitpoint(String outcome, UUID id, String token) {}

    @FunctionalInterface
    private interface Reader<T> {
        T read(ResultSet row) throws SQLException;
    }

    /** The row that a function returns, or null. Each call commits at once: autocommit is JDBC's default. */
    private static <T> T call(Connection connection, String sql, Reader<T> reader, Object... arguments)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < arguments.length; i++) {
                statement.setObject(i + 1, arguments[i]);
            }
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? reader.read(row) : null;
            }
        }
    }

    private static Lease claim(Connection connection) throws SQLException {
        // An instance is one process: use a unique name for each.
        return call(connection, CLAIM,
                row -> new Lease(row.getString("handle"), row.getString("handle_kind"), row.getInt("attempt_index"),
                        row.getLong("lease_epoch"), row.getLong("lease_expires_at_ms"), row.getBytes("payload")),
                LANE, "booker-" + ProcessHandle.current().pid());
    }

    private static String two(ResultSet row) throws SQLException {
        return row.getString(1) + " " + row.getString(2);
    }

    /** The SQLSTATE that a call fails with. PSQLException.getServerErrorMessage() also has the DETAIL and the HINT. */
    private static String refusal(Connection connection, String sql, Object... arguments) {
        try {
            call(connection, sql, row -> null, arguments);
            return "none";
        } catch (SQLException error) {
            return error.getSQLState();
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** Converts the URL that the other languages use into a JDBC URL. */
    private static Connection connect(String variable) throws SQLException {
        URI uri = URI.create(System.getenv(variable));
        String[] login = uri.getUserInfo().split(":", 2);
        return DriverManager.getConnection(
                "jdbc:postgresql://" + uri.getHost() + ":" + uri.getPort() + uri.getPath(), login[0], login[1]);
    }

    public static void main(String[] args) throws SQLException {
        try (Connection connection = connect("PYFF_DSN"); Connection outsider = connect("PYFF_SENDER_DSN")) {
            // Submit work. The key makes a repetition harmless.
            Object[] invoice = {LANE, bytes("invoice 42"), LANE + "/42"};
            String executionId = call(connection, CREATE, row -> {
                System.out.println("create: " + row.getString("outcome") + " " + row.getString("public_state"));
                return row.getString("execution_id");
            }, invoice);
            System.out.println("create again: " + call(connection, CREATE,
                    row -> row.getString("outcome") + " " + row.getString("execution_id").equals(executionId), invoice));

            // A worker claims it under a lease, and renews the lease while it works.
            Lease first = claim(connection);
            System.out.printf("claim: %s %d %d %s%n", first.kind, first.attempt, first.epoch, text(first.payload));
            System.out.println("renew: " + call(connection, RENEW, row -> row.getLong("lease_epoch") + " "
                    + (row.getLong("lease_expires_at_ms") >= first.expiresAtMs), first.handle));

            // Suspend: this releases the lease and returns a token for the sender of the signal.
            Waitpoint point = call(connection, SUSPEND, row -> new Waitpoint(row.getString("outcome"),
                    row.getObject("waitpoint_id", UUID.class), row.getString("waitpoint_token")), first.handle);
            System.out.println("suspend: " + point.outcome);
            System.out.println("claim: " + (claim(connection) == null ? "nothing" : "something"));

            // The outsider has the token, and a login that may only deliver signals.
            System.out.println("outsider looks: " + refusal(outsider, "select * from ff_list_executions()"));
            System.out.println("outsider forges: "
                    + refusal(outsider, DELIVER, executionId, point.id, "key-1:forged", bytes("")));
            System.out.println("outsider signals: " + call(outsider, DELIVER, Polyglot::two,
                    executionId, point.id, point.token, bytes("100 euros")));

            // Any worker continues the same attempt, under a new lease.
            Lease second = claim(connection);
            System.out.printf("claim: %s %d %d%n", second.kind, second.attempt, second.epoch);
            System.out.println("signal: " + call(connection, OBSERVE,
                    row -> row.getString("signal_name") + " " + text(row.getBytes("payload")), second.handle));

            // The first handle is no longer valid.
            System.out.println("renew with the old handle: " + refusal(connection, RENEW, first.handle));

            for (String what : new String[] {"complete: ", "complete again: "}) {
                System.out.println(what + call(connection, COMPLETE,
                        row -> row.getString("public_state") + " " + row.getBoolean("replayed"),
                        second.handle, bytes("booked")));
            }
        }
    }

    private Polyglot() {}
}
