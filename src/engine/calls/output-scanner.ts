import { isFromHost } from '../../agent/loop/taint-tracker.ts';
import { originOfTool } from '../../agent/history/origins.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { CallerContext, ToolDescriptor, ToolResult } from '../../tools/contract.ts';
import type { EventSink } from '../../tools/events.ts';
import { type OutputScanSettings, scanOutput, scanText } from '../../tools/output-scan/scan-output.ts';

export type OutputScanner = (tool: ToolDescriptor, result: ToolResult, caller: CallerContext) => ToolResult;

/** Scans the results that leave the tools, as the policy says; undefined when it keeps all of them. */
export function createOutputScanner({ outputScan }: TrustPolicySpec, events: EventSink): OutputScanner | undefined {
  const { credentials = 'Redact', invisibleCharacters = 'Escape' } = outputScan ?? {};
  const [redactsCredentials, escapes] = [credentials === 'Redact', invisibleCharacters === 'Escape'];
  if (!redactsCredentials && !escapes) return undefined;
  return (tool, result, { session }) => {
    const escapesInvisible = escapes && isFromHost(originOfTool(tool));
    const settings: OutputScanSettings = { redactsCredentials, escapesInvisible };
    if (!result.ok) return { ...result, error: { ...result.error, message: scanText(result.error.message, settings) } };
    const scanned = scanOutput(result.output, settings);
    if (scanned.credentials > 0) events(redactedEvent(tool.name, scanned.credentials), session);
    return scanned.output === result.output ? result : { ...result, output: scanned.output };
  };
}

function redactedEvent(tool: string, count: number): Parameters<EventSink>[0] {
  const what = count === 1 ? 'a credential' : `${count} credentials`;
  const message = `${what} in the result of "${tool}" ${count === 1 ? 'was' : 'were'} redacted; see outputScan of the TrustPolicy`;
  return { type: 'warning', code: 'output-redacted', message };
}
