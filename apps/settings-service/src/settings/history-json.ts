import type { HistoryEntry } from './list-history.query';

/** A page of history as JSON text. Identifiers are numbers, spliced in as PostgreSQL printed them, like the values. */
export function historyPageJson(entries: readonly HistoryEntry[], nextPageKey: string | null): string {
  return `{"history":[${entries.map(entryJson).join(',')}],"nextPageKey":${JSON.stringify(nextPageKey)}}`;
}

function entryJson(entry: HistoryEntry): string {
  const members: readonly (readonly [string, string])[] = [
    ['id', entry.id],
    ['operation', JSON.stringify(entry.operation)],
    ['settingValue', entry.valueText],
    ['personId', entry.personId ?? 'null'],
    ['userId', entry.userId ?? 'null'],
    ['personName', JSON.stringify(entry.personName)],
    ['persona', JSON.stringify(entry.persona)],
    ['occurredAt', JSON.stringify(entry.occurredAt)],
    ['requestId', JSON.stringify(entry.requestId)],
  ];
  return `{${members.map(([name, text]) => `"${name}":${text}`).join(',')}}`;
}
