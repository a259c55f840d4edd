import { REQUEST_KINDS, type FuzzRequest, type RequestKind } from './fuzz-request.ts';
import type { Outcome } from './http/connections.ts';

/** Something that must not happen, how often it did, and the first request that shows it. */
export interface Finding {
  readonly what: string;
  readonly where: string;
  readonly firstNumber: number;
  readonly trick: string;
  count: number;
}

interface Row {
  sent: number;
  readonly statuses: Map<string, number>;
  slowestMs: number;
}

/** Counts what became of requests. Findings of one sort at one operation are one entry: a thousand of them say no more. */
export class Ledger {
  readonly #rows = new Map<RequestKind, Row>();
  readonly #findings = new Map<string, Finding>();
  readonly #operations = new Map<string, number>();
  readonly #onNew: (finding: Finding) => void;
  sent = 0;

  /** @param onNew told of each finding when it is made for the first time */
  constructor(onNew: (finding: Finding) => void = () => undefined) {
    this.#onNew = onNew;
  }

  enter(
    number: number,
    request: FuzzRequest,
    operation: string | null,
    outcome: Outcome,
    violations: readonly string[],
  ): void {
    this.sent += 1;
    const row = this.#rows.get(request.kind) ?? {
      sent: 0,
      statuses: new Map<string, number>(),
      slowestMs: 0,
    };
    this.#rows.set(request.kind, row);
    row.sent += 1;
    row.slowestMs = Math.max(row.slowestMs, outcome.tookMs);
    const status = outcome.kind === 'answered' ? String(outcome.answer.status) : outcome.kind;
    row.statuses.set(status, (row.statuses.get(status) ?? 0) + 1);
    const where = `${request.service} ${operation ?? 'elsewhere'}`;
    if (status.startsWith('2') || status.startsWith('3'))
      this.#operations.set(where, (this.#operations.get(where) ?? 0) + 1);
    for (const what of violations)
      this.add({ what, where: `${where} (${request.kind})`, firstNumber: number, trick: request.trick });
  }

  add(finding: Omit<Finding, 'count'>): void {
    const key = `${finding.where} ${finding.what}`;
    const known = this.#findings.get(key);
    if (known !== undefined) {
      known.count += 1;
      return;
    }
    const made = { ...finding, count: 1 };
    this.#findings.set(key, made);
    this.#onNew(made);
  }

  get findings(): readonly Finding[] {
    return [...this.#findings.values()];
  }

  /** Ids of the operations that succeeded at least once. */
  get succeeded(): ReadonlySet<string> {
    return new Set(this.#operations.keys());
  }

  /** One line for each kind: how many were sent, what was answered, how long the slowest took. */
  table(): string {
    const lines = REQUEST_KINDS.flatMap((kind) => {
      const row = this.#rows.get(kind);
      if (row === undefined) return [];
      const statuses = [...row.statuses].sort(([one], [other]) => one.localeCompare(other));
      const text = statuses.map(([status, count]) => `${status} × ${count}`).join('  ');
      return [
        `  ${kind.padEnd(15)}${String(row.sent).padStart(8)}  ${(row.slowestMs / 1_000).toFixed(1).padStart(5)} s  ${text}`,
      ];
    });
    return [`  ${'kind'.padEnd(15)}${'sent'.padStart(8)}  slowest  answers`, ...lines].join('\n');
  }
}
