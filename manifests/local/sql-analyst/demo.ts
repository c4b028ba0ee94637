import { join } from 'node:path';
import { runArguments, runSample, writeConfig } from '../shared/sample.ts';
import { makeDatabase } from './make-database.ts';

/** `make sample-sql`: the agent queries a SQLite database with the orders of the quick start. */

const file = (name: string): string => join(import.meta.dirname, name);

await runSample({
  name: 'sql',
  prepare: async (folders) => {
    const database = join(folders.own, 'orders.db');
    await makeDatabase(database);
    await writeConfig(folders, 'databases.yaml', { databases: [{ name: 'orders', type: 'SQLite', file: database }] });
  },
  commands: (folders) => [
    runArguments(folders, [file('sql-analyst.yaml')], file('replay.yaml'), 'Which region sold the most?'),
  ],
});
