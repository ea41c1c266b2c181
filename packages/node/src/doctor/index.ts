import type { SpaceHome } from '../images/paths.ts'
import type { Check, DoctorSettings } from './check.ts'
import { isolationChecks } from './isolation.ts'
import { portChecks } from './ports.ts'
import { processorChecks } from './processor.ts'
import { programChecks } from './programs.ts'
import { roomChecks } from './room.ts'
import { runtimeChecks } from './runtimes.ts'

export type { Check, DoctorSettings } from './check.ts'

/** Looks at everything SPACE needs of this host; changes nothing. Takes about a second. */
export async function hostChecks(home: SpaceHome, settings: DoctorSettings): Promise<Check[]> {
  const groups = await Promise.all([
    runtimeChecks(home),
    processorChecks(settings.machine ?? ''),
    programChecks(),
    isolationChecks(),
    roomChecks(home.home),
    portChecks({ SPACE_API_URL: settings.apiUrl, SPACE_DATA_PLANE_URL: settings.dataPlaneUrl }),
  ])
  return groups.flat()
}
