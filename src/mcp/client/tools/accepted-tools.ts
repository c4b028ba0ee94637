import type { Digest } from '../../lib/canonical.ts';
import type { ListedTool } from './listed-tool.ts';

/** What a user accepted of one server: the digest of each tool by its name. */
export type AcceptedTools = Readonly<Record<string, Digest>>;

export interface TrustedTools {
  /** What a user accepted, unchanged. */
  callable: ListedTool[];
  /** New tools, and accepted ones that have changed since. No agent sees them. */
  quarantined: { tool: ListedTool; isChanged: boolean }[];
}

/** Separates the tools that a user accepted as they are from all others. */
export function separateTools(tools: readonly ListedTool[], accepted: AcceptedTools): TrustedTools {
  const pinOf = ({ name }: ListedTool): Digest | undefined =>
    Object.hasOwn(accepted, name) ? accepted[name] : undefined;
  return {
    callable: tools.filter((tool) => pinOf(tool) === tool.digest),
    quarantined: tools
      .filter((tool) => pinOf(tool) !== tool.digest)
      .map((tool) => ({ tool, isChanged: pinOf(tool) !== undefined })),
  };
}
