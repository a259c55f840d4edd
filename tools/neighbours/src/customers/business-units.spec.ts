import { BusinessUnits } from './business-units';
import type { BusinessUnit } from './business-units';

const NOW = new Date('2026-01-05T10:00:00Z');

function unit77(units: BusinessUnits): BusinessUnit {
  const unit = units.find(77);
  if (unit === null) throw new Error('business unit 77 is part of the seed');
  return unit;
}

describe('BusinessUnits', () => {
  it('knows business unit 77 by number and by PLT code, with facilities 501 and 502', () => {
    const units = new BusinessUnits();
    expect(units.findByPlt('PLT-77')).toEqual(unit77(units));
    expect(unit77(units).facilityIds).toEqual([501, 502]);
    expect(units.find(1)).toBeNull();
    expect(units.findByPlt('PLT-1')).toBeNull();
  });

  it('drafts a change of the whole unit unless the request narrows it', () => {
    const units = new BusinessUnits();
    expect(units.draft(unit77(units), { changeType: 'Activated' }, 'e1', NOW)).toEqual({
      eventId: 'e1',
      occurredAtUtc: '2026-01-05T10:00:00.000Z',
      businessUnitId: 77,
      facilityIds: [501, 502],
      changeType: 'Activated',
      timeZone: 'Europe/Berlin',
    });
    expect(
      units.draft(
        unit77(units),
        { changeType: 'Updated', facilityIds: [501], timeZone: 'Asia/Tokyo' },
        'e2',
        NOW,
      ),
    ).toMatchObject({ facilityIds: [501], timeZone: 'Asia/Tokyo' });
  });

  it('never dates two changes of one unit at the same instant', () => {
    const units = new BusinessUnits();
    const instants = ['e1', 'e2', 'e3'].map(
      (id) => units.draft(unit77(units), { changeType: 'Updated' }, id, NOW).occurredAtUtc,
    );
    expect(new Set(instants).size).toBe(3);
    expect([...instants].sort()).toEqual(instants);
  });

  it('changes state with each published change and ignores one that is older than the last', () => {
    const units = new BusinessUnits();
    const activation = units.draft(unit77(units), { changeType: 'Activated' }, 'e1', NOW);
    const update = units.draft(
      unit77(units),
      { changeType: 'Updated', facilityIds: [501, 502, 505] },
      'e2',
      NOW,
    );
    units.apply(activation);
    units.apply(update);
    expect(unit77(units)).toMatchObject({ status: 'Active', facilityIds: [501, 502, 505] });
    units.apply({ ...activation, changeType: 'Deactivated' });
    expect(unit77(units)).toMatchObject({ status: 'Active', facilityIds: [501, 502, 505] });
  });
});
