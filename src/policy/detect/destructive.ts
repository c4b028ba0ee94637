interface DestructiveCommand {
  words: readonly string[];
  /** A later word with one of these prefixes makes the command destructive. */
  options: readonly string[];
  /** A short option that contains one of these letters does so too. */
  letters: readonly string[];
}

const DESTRUCTIVE_WITH_OPTION: readonly DestructiveCommand[] = [
  { words: ['rm'], options: ['--recursive', '--no-preserve-root'], letters: ['r', 'R'] },
  { words: ['dd'], options: ['of=/dev/'], letters: [] },
  { words: ['chmod'], options: ['--recursive'], letters: ['R'] },
  { words: ['chown'], options: ['--recursive'], letters: ['R'] },
  { words: ['find'], options: ['-delete'], letters: [] },
  { words: ['git', 'push'], options: ['--force', '--delete', '--mirror', '+'], letters: ['f', 'd'] },
  { words: ['git', 'reset'], options: ['--hard'], letters: [] },
  { words: ['git', 'clean'], options: ['--force'], letters: ['f', 'd', 'x'] },
  { words: ['git', 'branch'], options: [], letters: ['D'] },
];

const ALWAYS_DESTRUCTIVE: readonly (readonly [first: string, second: string | undefined])[] = [
  ['mkfs', undefined],
  ['shred', undefined],
  ['wipefs', undefined],
  ['shutdown', undefined],
  ['reboot', undefined],
  ['drop', 'table'],
  ['drop', 'database'],
  ['drop', 'schema'],
  ['drop', 'view'],
  ['drop', 'index'],
  ['drop', 'user'],
  ['truncate', undefined],
  ['kubectl', 'delete'],
  ['terraform', 'destroy'],
  ['helm', 'uninstall'],
];

/** The destructive part of a command line or SQL text, as it is written; undefined when there is none. Linear in the words of each statement. */
export function findDestructive(text: string): string | undefined {
  for (const statement of text.split(/[;\n|&]/)) {
    const words = statement.split(/[\s"'`(),]+/).filter((word) => word !== '');
    const found = commandIn(words) ?? unboundedStatement(words);
    if (found !== undefined) return found;
  }
  return undefined;
}

function commandIn(words: readonly string[]): string | undefined {
  const names = words.map(baseName);
  const plain = ALWAYS_DESTRUCTIVE.find(([first, second]) =>
    names.some((name, at) => isNamed(name, first) && (second === undefined || names[at + 1] === second)),
  );
  if (plain !== undefined) return plain.filter((word) => word !== undefined).join(' ');
  for (const command of DESTRUCTIVE_WITH_OPTION) {
    const start = names.findIndex((_, at) => command.words.every((word, offset) => names[at + offset] === word));
    if (start < 0) continue;
    const option = words.slice(start + command.words.length).find((word) => isDestructive(command, word));
    if (option !== undefined) return `${command.words.join(' ')} ${option.slice(0, 32)}`;
  }
  return undefined;
}

/** `mkfs.ext4` counts as `mkfs`. */
function isNamed(name: string, command: string): boolean {
  return name === command || name.startsWith(`${command}.`);
}

function isDestructive({ options, letters }: DestructiveCommand, word: string): boolean {
  if (options.some((option) => word.startsWith(option))) return true;
  return word.startsWith('-') && !word.startsWith('--') && letters.some((letter) => word.includes(letter));
}

function baseName(word: string): string {
  return word.slice(word.lastIndexOf('/') + 1).toLowerCase();
}

/** `DELETE FROM` and `UPDATE … SET` without `WHERE` change every row. */
function unboundedStatement(words: readonly string[]): string | undefined {
  const lower = words.map((word) => word.toLowerCase());
  if (lower.includes('where')) return undefined;
  const deletes = lower.indexOf('delete');
  if (deletes >= 0 && lower[deletes + 1] === 'from') return 'delete from without where';
  const updates = lower.indexOf('update');
  return updates >= 0 && lower.indexOf('set', updates) > updates ? 'update without where' : undefined;
}
