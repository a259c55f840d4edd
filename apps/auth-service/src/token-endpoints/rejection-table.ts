import { REJECTION_STATUS, TOKEN_FLOWS, TokenRejectionReason } from './rejection';
import type { Rejection, TokenFlow } from './rejection';

/** How people know the flows: the last words of their paths. */
const TITLES: Readonly<Record<TokenFlow, string>> = {
  refresh: 'refresh',
  password: 'user',
  trust: 'trust',
  'trust-simple': 'trust-simple',
  bearer: 'bearer',
  openid: 'openId',
  windows: 'winauth',
};

/** Flows that share their statuses share a column. */
const COLUMNS = [...new Set(Object.values(REJECTION_STATUS))].map((statuses) => ({
  title: TOKEN_FLOWS.filter((flow) => REJECTION_STATUS[flow] === statuses)
    .map((flow) => TITLES[flow])
    .join(', '),
  statuses,
}));

/** The reason → status table for people, in Markdown. */
export function rejectionTable(): string {
  const rejections = Object.values(TokenRejectionReason).filter(
    (each): each is Rejection => typeof each === 'number' && each !== TokenRejectionReason.Successful,
  );
  const rows = [
    ['reason', ...COLUMNS.map(({ title }) => title)],
    ['---', ...COLUMNS.map(() => '---')],
    ['0 Successful', ...COLUMNS.map(() => '200')],
    ...rejections.map((reason) => [
      `${String(reason)} ${TokenRejectionReason[reason]}`,
      ...COLUMNS.map(({ statuses }) => cell(statuses[reason])),
    ]),
  ];
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function cell(status: number | { proof: number; resolution: number } | null): string {
  if (status === null) return '';
  if (typeof status === 'number') return String(status);
  const { proof, resolution } = status;
  return `${String(proof)} proof wrong; ${String(resolution)} proof right, but the user or persona not resolved`;
}
