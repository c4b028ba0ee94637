import { readFile } from 'node:fs/promises';
import { messageOf, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';

const MAX_MESSAGE = 300;

/** The only authorities to trust for the hosts of a connection, PEM; undefined for the public ones. Throws TEMPER_CONNECTION_FAILED. */
export async function authoritiesOf(
  connection: { readonly name: string; readonly caFile?: string } | undefined,
): Promise<string[] | undefined> {
  if (connection?.caFile === undefined) return undefined;
  const { name, caFile } = connection;
  try {
    return [await readFile(caFile, 'utf8')];
  } catch (cause) {
    const message = `connection "${name}": caFile cannot be read: ${printable(messageOf(cause), MAX_MESSAGE)}`;
    throw new TemperError('TEMPER_CONNECTION_FAILED', message, { cause });
  }
}
