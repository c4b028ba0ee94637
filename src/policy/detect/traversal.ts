import { pathSegments } from '../patterns/pattern-subjects.ts';
import type { ToolCategory } from '../types.ts';

const PATH_NAMES: ReadonlySet<string> = new Set([
  'path',
  'paths',
  'file',
  'files',
  'filename',
  'filepath',
  'dir',
  'directory',
  'folder',
  'root',
  'cwd',
  'source',
  'src',
  'destination',
  'dest',
  'target',
  'from',
  'to',
]);

/** Members of file tools that contain text and not a path. */
const TEXT_NAMES: ReadonlySet<string> = new Set([
  'content',
  'contents',
  'text',
  'oldtext',
  'newtext',
  'expectedtext',
  'data',
  'body',
  'query',
  'pattern',
]);

/** The reason why the text is not a valid path, when its member is expected to contain one; otherwise undefined. */
export function findTraversal(category: ToolCategory, name: string, text: string): string | undefined {
  const key = name.toLowerCase().replaceAll(/[-_]/g, '');
  const isPath = PATH_NAMES.has(key) || (category === 'file_system' && !TEXT_NAMES.has(key));
  if (!isPath) return undefined;
  const segments = pathSegments(text);
  return typeof segments === 'string' ? segments : undefined;
}
