import { isFromHost } from '../../agent/loop/taint-tracker.ts';
import { originOfTool } from '../../agent/history/origins.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { ToolResult } from '../../tools/contract.ts';
import type { EventSink } from '../../tools/events.ts';
import { isCallOfTool } from '../../tools/nested/nested-calls.ts';
import type { ResultScan } from '../../tools/output-scan/result-scan.ts';
import { type OutputScanSettings, scanOutput, scanText } from '../../tools/output-scan/scan-output.ts';

/** Scans the results that leave the tools, as the policy says; undefined when it keeps all of them. */
export function createOutputScanner({ outputScan }: TrustPolicySpec, events: EventSink): ResultScan | undefined {
  const { credentials = 'Redact', invisibleCharacters = 'Escape' } = outputScan ?? {};
  const [redactsCredentials, escapes] = [credentials === 'Redact', invisibleCharacters === 'Escape'];
  if (!redactsCredentials && !escapes) return undefined;
  return {
    isFromHost: (tool) => isFromHost(originOfTool(tool)),
    scan(tool, result, call) {
      const escapesInvisible = escapes && call.isFromHost;
      const scanned = scannedResult(result, { redactsCredentials, escapesInvisible });
      // What a tool passes to another one is redacted for events and hooks only: it has not left the tools.
      if (scanned.credentials > 0 && !isCallOfTool(call.caller))
        events(redactedEvent(tool.name, scanned.credentials), call.caller.session);
      return scanned.result;
    },
  };
}

function scannedResult(result: ToolResult, settings: OutputScanSettings): { result: ToolResult; credentials: number } {
  if (!result.ok) {
    const { text, credentials } = scanText(result.error.message, settings);
    return { result: { ...result, error: { ...result.error, message: text } }, credentials };
  }
  const { output, credentials } = scanOutput(result.output, settings);
  return { result: output === result.output ? result : { ...result, output }, credentials };
}

function redactedEvent(tool: string, count: number): Parameters<EventSink>[0] {
  const what = count === 1 ? 'a credential' : `${count} credentials`;
  const message = `${what} in the result of "${tool}" ${count === 1 ? 'was' : 'were'} redacted; see outputScan of the TrustPolicy`;
  return { type: 'warning', code: 'output-redacted', message };
}
