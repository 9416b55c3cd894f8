// Sets whose subfiles lie on a tier of the nodes: where this node has them, and which node has which.
#pragma once

#include <vector>

#include "file/open_file.hpp"
#include "subfile/sealed_drainer.hpp"

namespace tapioca::file {

// These are local.

/// Removes what this node has of the set that was at this stub, if its subfiles lie on a tier. What cannot be removed
/// stays.
void remove_from_node(subfile::Stub const& stub);
/// Finds this node's directory for the subfiles of a new set. Fails, with advice, if the node does not have the tier,
/// or if it does not keep data as long as it should.
core::Status choose_place(OpenFile& file);
/// The same for a set that exists. A node that does not have the tier has none of its subfiles.
void find_place(OpenFile& file);

/// Makes this node's directory, unless it is there.
core::Status make_place(OpenFile& file);

// These are collective, and throw the same error on all ranks.

/// Makes the directory on each node, before anything of the file is changed.
void make_places(OpenFile& file);
/// Removes what was made there, since the file could not be opened after all. Local.
void unmake_places(OpenFile& file);
/// Finds out which node has which subfiles.
void find_subfiles(OpenFile& file);
/// Removes what killed jobs, or failed steps, had begun on this node behind the last subfile of which the index knows,
/// if this opening adds chunks, so that nobody else does. To be called before it writes. Local.
void remove_begun(OpenFile& file);
/// Begins to serve other nodes, so that every rank reaches all subfiles by itself, if the file has peers. What fails
/// here, an access that needs it reports.
void begin_service(OpenFile& file);
/// Ends that. To be called when all ranks have closed the file. Local.
void end_service(OpenFile& file);
/// Which node has which subfile has changed. Local.
void tell_peers(OpenFile& file);
/// Removes subfiles on the nodes of a set that this file has replaced; what cannot be removed stays. Local.
void remove_replaced(OpenFile const& file);
/// Subfiles of earlier openings on this node's tier that have data of the set. On the first rank of each node; local.
core::Result<std::vector<subfile::SealedDrainer::Sealed>> subfiles_to_drain(OpenFile const& file);
/// Fails if subfiles that have data are not in the directory of the set, wherever they are: as long as this opening
/// adds chunks, any; when it has completed the set, those of its own. Local.
core::Status check_drained(OpenFile const& file);
/// Closes what this rank still has open of subfiles that were drained, so that the tier gets their room back; unless
/// other threads may be using it. Local.
void leave_drained(OpenFile& file);
/// Removes this node's directory if no subfile is left in it. Local.
void remove_empty_place(OpenFile const& file);
/// Removes this node's subfiles that have no data of the set any more. Local.
void remove_unused(OpenFile const& file);

}  // namespace tapioca::file
