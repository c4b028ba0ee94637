// run-files.ts CONCURRENCY PATTERN…: runs the test files that match, each in its own process, as `node --test` does. It starts the slow files
// first: `node --test` starts files by name, and a slow one that starts last leaves the other processor idle.
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

/** The files that take more than half a minute, the slowest first. */
const SLOW_FILES = [
  'test/e2e/acceptance.test.ts',
  'test/e2e/kills.test.ts',
  'test/e2e/quickstart.test.ts',
  'test/integration/operator/promotion.test.ts',
  'test/integration/operator/nats.test.ts',
  'test/integration/operator/faults.test.ts',
  'test/integration/gitops/gitea.test.ts',
  'test/integration/operator/agent-conditions.test.ts',
  'test/integration/nats/crash.test.ts',
  'test/integration/gateway/drain.test.ts',
  'test/integration/nats/three-servers.test.ts',
  'test/integration/api-server/invalid-objects.test.ts',
  'test/integration/gateway/delivery.test.ts',
  'test/integration/operator/node-failure.test.ts',
  'test/integration/gateway/neighbours/connections.test.ts',
  'test/integration/gateway/neighbours/storage.test.ts',
  'test/integration/operator/tool-approvals.test.ts',
  'test/integration/operator/replacement.test.ts',
  'test/integration/operator/operator.test.ts',
];

function main([concurrency = '', ...patterns]: string[]): void {
  const found = globSync(patterns);
  if (!(Number(concurrency) > 0) || found.length === 0) {
    throw new Error('usage: run-files.ts CONCURRENCY PATTERN…, with patterns that match test files');
  }
  const gone = SLOW_FILES.find((file) => !existsSync(file));
  if (gone !== undefined) throw new Error(`${gone} does not exist; remove it from SLOW_FILES`);
  const slow = SLOW_FILES.filter((file) => found.includes(file));
  const others = found.filter((file) => !SLOW_FILES.includes(file)).sort();
  const files = [...slow, ...others].map((file) => join(process.cwd(), file));
  const tests = run({ files, concurrency: Number(concurrency) });
  tests.on('test:summary', ({ file, success }) => {
    if (file === undefined && !success) process.exitCode = 1;
  });
  tests.compose(spec).pipe(process.stdout);
}

main(process.argv.slice(2));
