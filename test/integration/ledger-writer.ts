/**
 * One gateway's ledger, hammering one account until it is full: `ledger-writer.ts <url> <limit> <most reservations>`. Prints one line
 * for each reservation granted and each settled, so that whoever kills it knows what it had.
 */
import { argv, stdout } from 'node:process';
import { hammer, openLedgerOn } from './ledger-bench.ts';

const [url = '', limit = '0', most = '0'] = argv.slice(2);
await using gateway = await openLedgerOn(url);
stdout.write('ready\n');
await hammer(gateway.ledger, { limit: Number(limit), most: Number(most), parallel: 4 }, (what, tokens) => {
  stdout.write(`${what} ${tokens}\n`);
});
stdout.write('end\n');
