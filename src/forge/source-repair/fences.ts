/** A block between lines of three backticks or tildes. */
interface FencedBlock {
  language: string;
  code: string;
}

const FENCE = /^ {0,3}(?:`{3,}|~{3,})[ \t]*([\w+#.-]{0,20})[^`\n]{0,200}$/;
const CODE_LANGUAGES: ReadonlySet<string> = new Set([
  '',
  'js',
  'javascript',
  'mjs',
  'cjs',
  'jsx',
  'node',
  'ts',
  'typescript',
  'mts',
  'tsx',
]);

/** The code of a text that contains one fenced block of JavaScript or TypeScript; undefined when it contains none, or several. */
export function unfence(text: string): { code: string; prose: boolean } | undefined {
  const lines = text.split('\n');
  const { blocks, prose } = readBlocks(lines);
  const [block, second] = blocks.filter(({ language }) => CODE_LANGUAGES.has(language.toLowerCase()));
  return block === undefined || second !== undefined ? undefined : { code: block.code, prose };
}

function readBlocks(lines: readonly string[]): { blocks: FencedBlock[]; prose: boolean } {
  const blocks: FencedBlock[] = [];
  let open: { language: string; lines: string[] } | undefined;
  let prose = false;
  for (const line of lines) {
    const fence = FENCE.exec(line.trimEnd());
    if (fence === null) {
      if (open !== undefined) open.lines.push(line);
      else if (line.trim() !== '') prose = true;
    } else if (open === undefined) open = { language: fence[1] ?? '', lines: [] };
    else {
      blocks.push({ language: open.language, code: open.lines.join('\n') });
      open = undefined;
    }
  }
  // A model that reaches its output limit, or forgets it, leaves the last fence open.
  if (open !== undefined) blocks.push({ language: open.language, code: open.lines.join('\n') });
  return { blocks, prose };
}

/** Whether the text begins with a fence, so that it is not code, although JavaScript reads backticks as templates. */
export function startsWithFence(text: string): boolean {
  return FENCE.test(text.trimStart().split('\n', 1)[0]?.trimEnd() ?? '');
}
