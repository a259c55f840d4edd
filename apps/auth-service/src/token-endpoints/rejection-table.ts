import { REJECTION_STATUS, TokenRejectionReason } from './rejection';
import type { Rejection, TokenFlow } from './rejection';

/** The columns: flows that share their statuses share one. */
const COLUMNS: readonly (readonly [title: string, flow: TokenFlow])[] = [
  ['refresh', 'refresh'],
  ['user', 'password'],
  ['trust, trust-simple', 'trust'],
  ['bearer', 'bearer'],
  ['openId, winauth', 'openid'],
];

/** The reason → status table for people, in Markdown. */
export function rejectionTable(): string {
  const rejections = Object.values(TokenRejectionReason).filter(
    (each): each is Rejection => typeof each === 'number' && each !== TokenRejectionReason.Successful,
  );
  const rows = [
    ['reason', ...COLUMNS.map(([title]) => title)],
    ['---', ...COLUMNS.map(() => '---')],
    ['0 Successful', ...COLUMNS.map(() => '200')],
    ...rejections.map((reason) => [
      `${String(reason)} ${TokenRejectionReason[reason]}`,
      ...COLUMNS.map(([, flow]) => cell(flow, reason)),
    ]),
  ];
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function cell(flow: TokenFlow, reason: Rejection): string {
  const statuses: number | { proof: number; resolution: number } | null = REJECTION_STATUS[flow][reason];
  if (statuses === null) return '';
  if (typeof statuses === 'number') return String(statuses);
  const { proof, resolution } = statuses;
  return `${String(proof)} proof wrong; ${String(resolution)} proof right, but the user or persona not resolved`;
}
