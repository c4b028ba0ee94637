import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { diffLines } from '../page/line-diff.ts';
import { type Block, foreign, foreignList, heading, type Inline, paragraph, warning } from '../page/document.ts';
import type { ToolReview } from '../tool-review.ts';

/** What differs from the version that the tool replaces. */
export function changeSections({ artifact, replaces }: ToolReview): Block[] {
  const title = heading(2, 'Changes');
  if (replaces === undefined) return [title, paragraph('The tool replaces no active tool of the same name.')];
  const { artifact: old, digest } = replaces;
  const parts: [string, (of: ToolArtifact) => string][] = [
    ['Description', ({ description }) => description],
    ['Implementation', implementationText],
    ['Input', ({ inputSchema }) => indented(inputSchema)],
    ['Output', ({ outputSchema }) => indented(outputSchema)],
    ['Tests', ({ tests }) => JSON.stringify(tests, null, 2)],
    ['Limits', ({ limits }) => JSON.stringify(limits, null, 2)],
  ];
  const changes = parts.flatMap(([name, textOf]): Block[] => {
    const lines = diffLines(textOf(old), textOf(artifact));
    return lines.length === 0 ? [] : [heading(3, name), { type: 'box', language: 'diff', lines }];
  });
  return [
    title,
    paragraph('The tool replaces ', foreign(digest), '.'),
    ...requirementChanges(old, artifact),
    ...changes,
  ];
}

const REQUIREMENTS = [
  ['apis', 'host functions'],
  ['domains', 'hosts'],
  ['paths', 'paths'],
] as const;

function requirementChanges(old: ToolArtifact, next: ToolArtifact): Block[] {
  return REQUIREMENTS.flatMap(([key, name]): Block[] => {
    const [before, after]: [string[], string[]] = [old.requires[key], next.requires[key]];
    const added = after.filter((item) => !before.includes(item));
    const removed = before.filter((item) => !after.includes(item));
    const blocks: Block[] = [];
    if (added.length > 0) blocks.push(warning(...change(`New ${name}: `, added)));
    if (removed.length > 0) blocks.push(paragraph(...change(`No longer needed ${name}: `, removed)));
    return blocks;
  });
}

function change(label: string, names: readonly string[]): Inline[] {
  return [label, ...foreignList(names, '')];
}

function implementationText({ implementation: { source, steps } }: ToolArtifact): string {
  return source ?? JSON.stringify(steps ?? [], null, 2);
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
