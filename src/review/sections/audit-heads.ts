import type { SignedHead } from '../../audit/stream-chain.ts';
import { type Block, foreign, type Inline, paragraph } from '../page/document.ts';
import type { ToolReview } from '../tool-review.ts';

/** The signed heads that tie the review to the provenance chain of the cluster. */
export function headBlocks({ promotion, requestHead, auditHead }: ToolReview): Block[] {
  const ofRequest =
    requestHead === undefined
      ? withoutHead(promotion.request)
      : [
          paragraph(
            'The newest signed head of the audit stream when the request was made. It must lie on the chain of the cluster.',
          ),
          headFacts(requestHead),
          ...comparison(promotion.request),
        ];
  if (auditHead === undefined || auditHead.signature === requestHead?.signature) return ofRequest;
  return [
    ...ofRequest,
    paragraph(
      'The newest signed head of the audit stream when this page was written. It must lie on the chain of the cluster.',
    ),
    headFacts(auditHead),
  ];
}

function withoutHead(request: string | undefined): Block[] {
  return request === undefined ? [] : [paragraph('The request has no signed head of the audit stream.')];
}

/** The words of this module are no command to copy: the name of the request is foreign. */
function comparison(request: string | undefined): Block[] {
  if (request === undefined) return [];
  return [
    paragraph(
      'Member spec.review.auditHead of the ApprovalRequest ',
      foreign(request),
      ', in a file: kubectl temper audit verify --head FILE',
    ),
  ];
}

function headFacts({ sequence, digest, time, recordedAt, key, signature }: SignedHead): Block {
  const recorded: [string, Inline[]][] = recordedAt === undefined ? [] : [['Recorded at', [foreign(recordedAt)]]];
  return {
    type: 'facts',
    rows: [
      ['Signed up to record', [String(sequence)]],
      ['Digest', [foreign(digest)]],
      ['Signed at', [foreign(time)]],
      ...recorded,
      ['Key', [foreign(key)]],
      ['Signature', [foreign(signature)]],
    ],
  };
}
