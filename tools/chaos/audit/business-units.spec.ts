import type { BusinessUnitChange } from '../load/journal.ts';
import { auditBusinessUnits } from './scheduler.ts';

const change = (
  eventId: string,
  minute: number,
  changeType: BusinessUnitChange['changeType'],
): BusinessUnitChange => ({
  eventId,
  businessUnitId: 77,
  changeType,
  facilityIds: [1, 2],
  occurredAtUtc: `2026-01-05T10:0${minute}:00Z`,
});
const first = change('e1', 1, 'Activated');
const second = change('e2', 2, 'Deactivated');

describe('auditBusinessUnits', () => {
  it('is content when all were taken, none took effect twice, and the youngest is in force', () => {
    const applied = { applications: ['e1', 'e2'], taken: ['e1', 'e2'], triggered: new Set<number>() };
    expect(auditBusinessUnits([first, second], [first, second], applied).findings).toEqual([]);
  });

  it('lets an older change be passed over', () => {
    const applied = { applications: ['e2'], taken: ['e1', 'e2'], triggered: new Set<number>() };
    expect(auditBusinessUnits([first, second], [second, first], applied).findings).toEqual([]);
  });

  it('finds changes that were lost on the way or took effect twice', () => {
    const applied = { applications: ['e2', 'e2'], taken: ['e2'], triggered: new Set<number>() };
    const check = auditBusinessUnits([first, second, change('e3', 1, 'Activated')], [first, second], applied);
    expect(check).toMatchObject({ lost: 2, duplicated: 1 });
  });

  it('finds triggers that are not those of the youngest change', () => {
    const applied = { applications: ['e1', 'e2'], taken: ['e1', 'e2'], triggered: new Set([2]) };
    expect(auditBusinessUnits([first, second], [first, second], applied).findings).toHaveLength(1);
  });
});
