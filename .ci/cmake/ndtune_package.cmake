# The .deb: `cpack -G DEB` in the build folder. What it depends on is read off the two programs by dpkg-shlibdeps, so it
# installs where it was built and wherever the same libraries are.

install(FILES ${PROJECT_SOURCE_DIR}/.ci/packages/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ndtune)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "ndtune maintainers <maintainers@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "mesh shapes for distributed training: predict, rank, run, export")
set(CPACK_PACKAGE_DESCRIPTION "ndtune prices every mesh shape (data, shard, context, tensor, pipeline,
expert) for a model, a cluster and a training framework, ranks them with
reasons, writes the winner as the framework's config file, and runs the same
training step for real on the machine at hand. No GPU is needed.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# ndtune starts ranks of its own host by itself, those of several hosts by mpirun, whose library they open at run time.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS libdnnl2)  # bf16 on processors opens it at run time
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_tree.cmake)
include(CPack)
