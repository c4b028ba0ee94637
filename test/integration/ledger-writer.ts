/**
 * One gateway's ledger, hammering one account until it is full: `ledger-writer.ts <url> <authority> <seed file> <limit> <most>`. Prints
 * one line for each reservation granted and each settled, so that whoever kills it knows what it had.
 */
import { argv, stdout } from 'node:process';
import { systemClock } from '../../src/lib/clock.ts';
import { connectBus } from '../../src/nats/connection.ts';
import { hammer, openLedgerOn } from './ledger-bench.ts';

const [servers = '', caFile = '', seedFile = '', limit = '0', most = '0'] = argv.slice(2);
const signal = AbortSignal.timeout(30_000);
await using bus = await connectBus({
  servers,
  caFile,
  seedFile,
  name: 'writer',
  user: 'gateway',
  clock: systemClock,
  signal,
});
await using ledger = openLedgerOn(bus);
await hammer(ledger, { limit: Number(limit), most: Number(most), parallel: 4 }, (what, tokens) => {
  stdout.write(`${what} ${tokens}\n`);
});
