import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface CodeBlock {
  /** Path of the page, relative to the repository. */
  page: string;
  language: string;
  text: string;
}

export interface DocumentedCommand {
  page: string;
  /** One line, without prompt and comment. */
  command: string;
}

const PROGRAMS = [
  'temper',
  'bin/temper',
  'bin/node',
  'kubectl',
  'helm',
  'make',
  'vllm',
  'export',
  'npm',
  'docker',
  'curl',
];
const CONSOLE = new Set(['', 'console', 'sh', 'bash']);
const FENCED = /^```(\w*)\n([\s\S]*?)^```/gm;

/** The fenced code blocks of the README, the contributor guide and all pages under `docs`, in this order. */
export async function codeBlocks(root: string): Promise<CodeBlock[]> {
  const names = await readdir(join(root, 'docs'), { recursive: true });
  const pages = names.filter((name) => name.endsWith('.md')).sort();
  const paths = ['README.md', 'CONTRIBUTING.md', ...pages.map((name) => `docs/${name}`)];
  const blocks = await Promise.all(
    paths.map(async (page) =>
      [...(await readFile(join(root, page), 'utf8')).matchAll(FENCED)].map(([, language = '', text = '']) => ({
        page,
        language,
        text,
      })),
    ),
  );
  return blocks.flat();
}

/** The command lines in console blocks. Lines of output do not start with the name of a program. */
export function commandsIn(blocks: readonly CodeBlock[]): DocumentedCommand[] {
  return blocks
    .filter(({ language }) => CONSOLE.has(language))
    .flatMap(({ page, text }) =>
      text
        .split('\n')
        .map((line) => line.replace(/^[$#] /, '').replace(/\s+# .*$/, ''))
        .filter((line) => PROGRAMS.some((program) => line === program || line.startsWith(`${program} `)))
        .map((command) => ({ page, command })),
    );
}
