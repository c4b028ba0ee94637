// Ends the process of a test file that never ends, for example because a failed test left a connection open: no result of a later file would
// be printed. A timeout of the test runner itself does not end processes (Node 26).

/** Several times what the slowest file takes beside others. */
const LIMIT_MS = 60 * 60_000;

const limit = Number(process.env['TEST_FILE_LIMIT_MS'] ?? LIMIT_MS);

setTimeout(() => {
  console.error(
    `the file did not end within ${limit} ms; what is open: ${process.getActiveResourcesInfo().join(', ')}`,
  );
  process.exit(1);
}, limit).unref();
