import { ACTION_TYPES, BUILTIN_LEVELS, FORGE_MODES, TOOL_APIS, TOOL_CATEGORIES } from '../../api/v1alpha1/actions.ts';
import type { CliIo } from '../io.ts';
import { objectNames } from './object-names.ts';
import type { ParsedWords } from './words.ts';

/** What may come next: words, or files or folders that the shell completes. */
export type Candidates = readonly string[] | 'files' | 'folders';

const FILE_OPTIONS: readonly string[] = [
  'filename',
  'providers',
  'model-script',
  'kubeconfig',
  'config',
  'script',
  'file',
  'tools',
  'path',
];
const FOLDER_OPTIONS: readonly string[] = ['state', 'workspace', 'out-dir', 'folder', 'skills'];

const VALUES: Readonly<Record<string, readonly string[]>> = {
  category: TOOL_CATEGORIES,
  action: ACTION_TYPES,
  level: BUILTIN_LEVELS,
  forge: FORGE_MODES,
  api: TOOL_APIS,
  tier: ['Agent', 'Shared'],
};

/** Options whose value is the name of an object. */
const OBJECTS: Readonly<Record<string, string>> = { agent: 'agents', session: 'sessions', policy: 'trustpolicies' };

/** Candidates for the value of an option. */
export async function optionValues(
  option: string,
  choices: readonly string[],
  words: ParsedWords,
  io: CliIo,
): Promise<Candidates> {
  if (choices.length > 0) return choices;
  if (FILE_OPTIONS.includes(option)) return 'files';
  if (FOLDER_OPTIONS.includes(option)) return 'folders';
  const fixed = VALUES[option];
  if (fixed !== undefined) return fixed;
  const kind = OBJECTS[option];
  if (kind !== undefined) return objectNames(kind, words, io);
  if (option !== 'tool') return [];
  const { builtInDescriptors } = await import('../../engine/built-in.ts');
  return builtInDescriptors().map(({ name }) => name);
}
