import { GenerationRefused, generationSettings } from './generation-settings';
import type { GenerationRequest } from './generation-settings';

describe('settings of recurring generation', () => {
  it('default to 02:00 UTC', () => {
    expect(generationSettings({ facilityId: 501 }, null)).toMatchObject({
      schedule: '0 2 * * *',
      timeZone: 'UTC',
    });
  });

  it('keep what the trigger has and the request leaves out', () => {
    const existing = { schedule: '30 4 * * 1', timeZone: 'Europe/Berlin' };
    expect(generationSettings({ facilityId: 501 }, existing)).toMatchObject(existing);
    expect(generationSettings({ facilityId: 501, schedule: '0 5 * * *' }, existing)).toMatchObject({
      schedule: '0 5 * * *',
      timeZone: 'Europe/Berlin',
    });
  });

  it.each<[GenerationRequest, string]>([
    [{ facilityId: 0 }, 'InvalidFacility'],
    [{ facilityId: 501, schedule: '@daily' }, 'InvalidSchedule'],
    [{ facilityId: 501, timeZone: 'Mars/Olympus' }, 'InvalidTimeZone'],
  ])('refuse %p as %s', (request, code) => {
    let refusal: unknown;
    try {
      generationSettings(request, null);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(GenerationRefused);
    expect(refusal).toMatchObject({ code });
  });
});
