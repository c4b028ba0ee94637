import { createHash } from 'node:crypto';
import type { DiscoveryEntry } from '../entry.ts';

const MAX_CHARACTERS = 2_000;
const MAX_PARAMETERS = 32;
const MAX_TAGS = 20;

/** What is embedded of an entry. It contains no more than a search by words reads. */
export function entryText({
  name,
  description,
  category,
  tags,
  parameters = '',
  requiredTools,
}: DiscoveryEntry): string {
  const names = parameters.split('\n').map((line) => line.split(' ', 1)[0] ?? '');
  const parts = [
    `${spoken(name)} (${name})`,
    description,
    line('Category', category === '' ? [] : [category]),
    line('Use cases', tags.slice(0, MAX_TAGS)),
    line('Parameters', names.filter((one) => one !== '').slice(0, MAX_PARAMETERS)),
    line('Requires', requiredTools.slice(0, MAX_TAGS)),
  ];
  return parts
    .filter((part) => part !== '')
    .join('\n')
    .slice(0, MAX_CHARACTERS)
    .toWellFormed();
}

/** Identifies the text of an entry. Another text has another id, so a vector never belongs to an older version of its entry. */
export function entryTextId(entry: DiscoveryEntry): string {
  return createHash('sha256').update(entryText(entry)).digest('hex').slice(0, 32);
}

function line(title: string, values: readonly string[]): string {
  return values.length === 0 ? '' : `${title}: ${values.join(', ')}`;
}

/** `csvRows` and `csv_rows` as words. */
function spoken(name: string): string {
  return name
    .slice(0, 200)
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[_./-]+/g, ' ')
    .trim();
}
