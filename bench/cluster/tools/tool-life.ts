import type { Row } from '../row.ts';
import { benchApprovals } from './approvals.ts';
import { benchParkedCalls } from './parked-calls.ts';
import { benchPromotions } from './promotions.ts';

/** The steps of a tool's life after its uses, `samples` times each, one after the other. */
export async function benchToolLife(samples: number): Promise<Row[]> {
  return [
    ...(await benchPromotions(samples)),
    ...(await benchApprovals(samples)),
    ...(await benchParkedCalls(samples)),
  ];
}
