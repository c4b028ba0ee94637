import type { Command } from 'commander';
import { suggestName } from '../../lib/suggest.ts';

const HELP = 'help';

/** Replaces the `help` of each group of verbs: it follows any number of words, and names a word that is no verb. */
export function addHelpCommands(group: Command): void {
  for (const child of group.commands) addHelpCommands(child);
  if (!visibleNames(group).includes(HELP)) return;
  group.helpCommand(false);
  group
    .command(`${HELP} [verb...]`)
    .description('display help for a verb')
    .action((words: string[]) => helpOf(group, words));
}

/** Prints the help of the verb that the words name. Fails as for an unknown verb when they name none. */
function helpOf(group: Command, words: readonly string[]): never {
  let found = group;
  for (const [index, word] of words.entries()) {
    const child = found.commands.find((command) => command.name() === word);
    if (child !== undefined) {
      found = child;
      continue;
    }
    const near = suggestName(word, visibleNames(found));
    const path = words.slice(0, index + 1).join(' ');
    return found.error(`error: unknown command '${path}'${near === undefined ? '' : `\n(Did you mean ${near}?)`}`);
  }
  return found.help();
}

function visibleNames(command: Command): string[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((child) => child.name());
}

/** Makes every verb report an unknown option before a missing one: a mistyped option is often the missing one. */
export function reportUnknownFirst(program: Command): void {
  for (const command of commandsOf(program)) {
    const report = command.error.bind(command);
    command.error = (message, options) => {
      const isMissing = options?.code === 'commander.missingMandatoryOptionValue';
      const unknown = isMissing ? command.args.find((word) => /^-./.test(word)) : undefined;
      if (unknown === undefined) return report(message, options);
      return report(unknownOption(command, unknown), { code: 'commander.unknownOption' });
    };
  }
}

function unknownOption(command: Command, word: string): string {
  const [flag = word] = word.split('=');
  const known = command.createHelp().visibleOptions(command);
  const near = suggestName(
    flag,
    known.flatMap(({ long }) => long ?? []),
  );
  return `error: unknown option '${flag}'${near === undefined ? '' : `\n(Did you mean ${near}?)`}`;
}

function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)];
}
