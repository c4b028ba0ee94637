import type { JsonObject } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { type Standing, standingOf } from '../../../mcp/client/tools/accepted-tools.ts';
import type { ListedTool, UnusableTool } from '../../../mcp/client/tools/listed-tool.ts';
import { environmentRedactor, redactingIo } from '../../run/redact.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { readAccepted } from './configured-servers.ts';
import { listServer } from './server-listing.ts';

/** Longer texts are refused before. */
const MAX_TEXT = 40_000;

interface ShownTool {
  tool: ListedTool;
  standing: Standing;
  /** What a user accepted of a tool that is different now. */
  before: ListedTool | undefined;
}

/** Prints the tools of a server whole, as a model would read them, and what a user accepted of them. */
export async function listTools(
  { server, output }: { server: string; output: 'text' | 'json' },
  outer: CliIo,
): Promise<number> {
  const io = redactingIo(outer, environmentRedactor(outer.environment));
  const accepted = (await readAccepted(io)).get(server) ?? [];
  const { tools, refused, digest } = await listServer(server, io);
  const shown = tools.map((tool): ShownTool => {
    const standing = standingOf(tool, accepted);
    const before = standing === 'changed' ? accepted.find(({ name }) => name === tool.name) : undefined;
    return { tool, standing, before };
  });
  const gone = accepted.filter(({ name }) => !tools.some((tool) => tool.name === name)).map(({ name }) => name);
  if (output === 'json') {
    writeJsonLine(io, {
      server,
      digest,
      tools: shown.map(jsonOf),
      refused: refused.map((tool) => ({ ...tool })),
      gone,
    });
    return EXIT.ok;
  }
  for (const one of shown) io.out(textOf(one));
  for (const tool of refused) io.out(refusedText(tool));
  for (const name of gone) io.out(`${printable(name)}  not listed any more\n`);
  if (shown.some(({ standing }) => standing !== 'accepted'))
    io.out(`accept the tools as they are above: temper mcp accept ${server} --digest ${digest}\n`);
  return EXIT.ok;
}

function jsonOf({ tool, standing, before }: ShownTool): JsonObject {
  return { ...tool, standing, ...(before === undefined ? {} : { accepted: { ...before } }) };
}

function textOf({ tool, standing, before }: ShownTool): string {
  const effects = tool.sideEffects ? 'with side effects' : 'without side effects';
  const head = `${tool.name}  ${standing}  ${tool.action}, ${effects}\n`;
  if (before === undefined) return `${head}${definitionText(tool, '')}`;
  return `${head}${definitionText(before, 'accepted ')}${definitionText(tool, 'now ')}`;
}

function definitionText({ description, inputSchema, outputSchema }: ListedTool, when: string): string {
  const line = (name: string, text: string): string => `  ${when}${name}: ${printable(text, MAX_TEXT)}\n`;
  const output = outputSchema === undefined ? '' : line('output', JSON.stringify(outputSchema));
  return `${line('description', description)}${line('input', JSON.stringify(inputSchema))}${output}`;
}

function refusedText({ remoteName, reason }: UnusableTool): string {
  return `${remoteName === '' ? 'the list' : printable(remoteName, 128)}  refused: ${printable(reason, 400)}\n`;
}
