/**
 * Runs one gateway's ledger that spends from one account until the limit: `ledger-load-process.ts <url> <CA file> <seed file> <limit>
 * <max reservations>`. Prints one line per granted reservation and one per commit, so that a test that kills this process knows both sums.
 */
import { argv, stdout } from 'node:process';
import { systemClock } from '../../../src/lib/clock.ts';
import { connectNats } from '../../../src/nats/connection/connection.ts';
import { spendUntilDenied, openLedgerOver } from './ledger-load.ts';

const [servers = '', caFile = '', seedFile = '', limit = '0', maxReservations = '0'] = argv.slice(2);
const signal = AbortSignal.timeout(30_000);
await using connection = await connectNats({
  servers,
  caFile,
  seedFile,
  name: 'writer',
  user: 'gateway',
  clock: systemClock,
  signal,
});
await using ledger = openLedgerOver(connection);
await spendUntilDenied(
  ledger,
  { limit: Number(limit), maxReservations: Number(maxReservations), parallel: 4 },
  (what, tokens) => {
    stdout.write(`${what} ${tokens}\n`);
  },
);
