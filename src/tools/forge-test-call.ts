import type { CallerContext } from './contract.ts';

/** The name of the tool with which an agent forges. No forged tool can have it. */
export const FORGE_TOOL_NAME = 'forge_tool';

/** The tool with which an agent drops a tool of its session. No forged tool can have its name. */
export const DROP_TOOL_NAME = 'drop_tool';

/** Where the calls of a forge come from that does not start from a call of `forge_tool`, such as the forge of an imported package. */
export const IN_FORGE: Pick<CallerContext, 'stack' | 'origin'> = { stack: [FORGE_TOOL_NAME], origin: 'ForgeTest' };

/**
 * Whether a forge makes this call to test a tool. Such a call counts neither as a call of the agent (loop guard, quota) nor as
 * a use of the called tool; the forge has its own limits on test cases, steps and time.
 */
export function isForgeTestCall({ origin }: Pick<CallerContext, 'origin'>): boolean {
  return origin === 'ForgeTest';
}
